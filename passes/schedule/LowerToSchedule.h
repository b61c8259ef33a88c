// One instruction for each op of the step.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/schedule/Kernels.h"

namespace meshwork::schedule {

/// Appends instructions to the phases of a program.
class Lowering {
public:
  Lowering(::mlir::ModuleOp module, ProgramOp program, int64_t bucketBytes);

  /// Every op of @microbatch in order.
  ::mlir::LogicalResult lowerMicrobatch(::mlir::func::FuncOp function);
  /// The collectives of @update, first the loss's; then the other ops.
  ::mlir::LogicalResult lowerUpdate(::mlir::func::FuncOp function);
  /// Parameters, inputs and results, after all else.
  void describeState(::mlir::func::FuncOp microbatch);

private:
  ::mlir::LogicalResult lower(::mlir::Operation *op);
  ::mlir::LogicalResult lowerFused(transformer::FusedOp op);
  ::mlir::LogicalResult lowerContract(transformer::ContractOp op);
  ::mlir::LogicalResult lowerAttention(transformer::AttentionOp op);
  ::mlir::LogicalResult lowerAttentionGrad(transformer::AttentionGradOp op);
  ::mlir::LogicalResult lowerEmbedding(transformer::EmbeddingOp op);
  ::mlir::LogicalResult lowerEmbeddingGrad(transformer::EmbeddingGradOp op);
  ::mlir::LogicalResult lowerRotaryTable(transformer::RotaryTableOp op);
  ::mlir::LogicalResult lowerUnslice(transformer::UnsliceOp op);
  ::mlir::LogicalResult lowerAssign(transformer::AssignOp op);
  ::mlir::LogicalResult lowerCollectives(::mlir::func::FuncOp function);

  /// Where a product or an embedding gradient goes, and whether it adds there.
  struct Destination {
    Place place;
    Accumulate accumulate;
  };
  ::mlir::FailureOr<Destination> destinationOf(::mlir::Value value);
  void zeroAtStepStart(const Place &place, const ::llvm::Twine &what);

  ::mlir::FailureOr<::mlir::Value> view(::mlir::Value value);
  ::mlir::Value randomView(::mlir::ValueRange random);
  ::mlir::StringAttr sourceOf(::mlir::Operation *op);
  ::mlir::IntegerAttr i64(uint64_t value) { return builder.getI64IntegerAttr(static_cast<int64_t>(value)); }

  ::mlir::ModuleOp module;
  ProgramOp program;
  int64_t bucketBytes;
  ::mlir::OpBuilder builder; // at the end of the current phase
  Placement placement;
  Kernels kernels;
  PhaseOp once, step, microbatch, update;
  ::llvm::DenseSet<StateKey> written; // gradients that an earlier product has set
  ::llvm::DenseSet<StateKey> zeroed;  // and those that a step starts at zero
};

} // namespace meshwork::schedule
