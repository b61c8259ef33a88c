// One instruction for each op of the step.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/schedule/Buckets.h"
#include "passes/schedule/Copies.h"
#include "passes/schedule/Gaps.h"
#include "passes/schedule/Kernels.h"
#include "passes/schedule/Matmul.h"

namespace meshwork::schedule {

/// Puts collectives of one kind side by side where nothing keeps them apart, so
/// that they travel in one bucket.
void groupCollectives(::mlir::Block &body);

/// Appends instructions to the lists of a program.
class Lowering {
public:
  /// `module` has @microbatch and @update.
  Lowering(::mlir::ModuleOp module, ProgramOp program, Kernels &kernels,
           int64_t bucketBytes, int64_t rowBytes, bool sumsInAnyOrder)
      : module(module), program(program), placement(program, module, rowBytes),
        builder(program, module), kernels(kernels),
        buckets(builder, placement, gradients, bucketBytes, sumsInAnyOrder) {}

  /// Every op of @microbatch in order.
  ::mlir::LogicalResult lowerMicrobatch(::mlir::func::FuncOp function);
  /// Every op of @update, after the reduction of the loss.
  ::mlir::LogicalResult lowerUpdate(::mlir::func::FuncOp function);
  /// Parameters, inputs and results, after all else.
  ::mlir::LogicalResult describeState(::mlir::func::FuncOp microbatch);

private:
  /// What is lowered from here on goes there.
  void beginList(ListKind kind, int64_t stage = 0);
  ::mlir::LogicalResult lower(::mlir::Operation *op);
  /// Whether it is made of what the runtime writes once a step, and nothing
  /// else, or says that it is of the step.
  bool isOfStep(::mlir::Operation *op) const;
  /// What all microbatches read, in the order of the program.
  ::mlir::LogicalResult lowerStep(::mlir::Block &body);
  ::mlir::LogicalResult lowerAtStepStart(::mlir::Operation *op);
  ::mlir::LogicalResult findForStep(::mlir::Operation *user,
                                    ::mlir::Value operand);
  Place placeOfStep(::mlir::Value value);
  // Between stages (LowerTransfers.cpp).
  ::mlir::LogicalResult lowerSend(mesh::SendOp op);
  ::mlir::LogicalResult lowerReceive(mesh::ReceiveOp op);
  ::mlir::LogicalResult lowerInstruction(::mlir::Operation *op);
  ::mlir::LogicalResult lowerFused(transformer::FusedOp op);
  // Repeats (LowerRepeat.cpp).
  ::mlir::LogicalResult lowerRepeat(transformer::RepeatOp op);
  ::mlir::LogicalResult placeArguments(transformer::RepeatOp op);
  ::mlir::LogicalResult placeYields(transformer::RepeatOp op);
  ::mlir::LogicalResult copyUnlessThere(::mlir::Location loc,
                                        ::mlir::Value value,
                                        const Place &wanted);
  ::mlir::LogicalResult lowerProduct(const ProductParts &product);
  ::mlir::FailureOr<::mlir::Value> auxOf(const ProductParts &product,
                                         const Layout &layout);
  ::mlir::FailureOr<::mlir::Value> flat(::mlir::Value value, bool isWritten);
  ::mlir::FailureOr<::mlir::Value> runOf(::mlir::Value numbers);
  ::mlir::LogicalResult lowerAttention(transformer::AttentionOp op);
  ::mlir::LogicalResult lowerAttentionGrad(transformer::AttentionGradOp op);
  ::mlir::LogicalResult lowerEmbedding(transformer::EmbeddingOp op);
  ::mlir::LogicalResult lowerEmbeddingGrad(transformer::EmbeddingGradOp op);
  ::mlir::LogicalResult lowerRotaryTable(transformer::RotaryTableOp op);
  ::mlir::LogicalResult lowerAssign(transformer::AssignOp op);
  /// A view where parameters, inputs and results are declared.
  ::mlir::Value declaredView(const Place &place);
  void describeParameter(transformer::ParameterOp op,
                         ::llvm::ArrayRef<transformer::StateOp> slots);
  void describeInputs(::mlir::func::FuncOp microbatch);

  ::mlir::LogicalResult lowerSlice(mesh::SliceOp op);
  ::mlir::FailureOr<::mlir::Value> read(::mlir::Value value,
                                        const Layout &layout);
  ::mlir::FailureOr<::mlir::Value> write(::mlir::Value value,
                                         const Layout &layout);
  ::mlir::LogicalResult lowerUnslice(transformer::UnsliceOp op);
  /// The matrices of a product ([batch, rows, columns]) with extents that fast
  /// kernels take, where there is room; see WidenProducts.cpp.
  void widen(::mlir::Location loc, Place &lhs, Place &rhs, Place &dst);
  void zeroBehind(::mlir::Location loc, const Place &matrix, int64_t loop,
                  int64_t size);

  ::mlir::FailureOr<::mlir::Value> view(::mlir::Value value);
  /// Seed, step and first sample as one; then the first head, if there.
  ::llvm::SmallVector<::mlir::Value> randomViews(::mlir::ValueRange random);
  ::mlir::Value viewOrNone(::mlir::Value value);
  ::mlir::ModuleOp module;
  ProgramOp program;
  Placement placement;
  ProgramBuilder builder;
  Kernels &kernels;
  PartInputs inputs{placement};
  ReducedGradients gradients{placement};
  Sums sums{builder, placement};
  Copies copies{builder, placement, inputs, sums};
  Gaps gaps{builder, placement};
  Buckets buckets;
  ::llvm::DenseSet<::mlir::Value> ofStep; // what all its microbatches read
  ::llvm::DenseSet<::mlir::Operation *> lowered; // in the list `step`
};

} // namespace meshwork::schedule
