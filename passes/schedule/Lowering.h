// One instruction for each op of the step, and copies around it.
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

/// A program while it is written, and what keeps track of it, by duty.
struct Lowering {
  /// `module` has @microbatch and @update. For the numbers see Passes.td.
  Lowering(::mlir::ModuleOp module, ProgramOp program, Kernels &kernels,
           int64_t bucketBytes, int64_t rowBytes, bool sumsInAnyOrder)
      : placement(program, module, rowBytes), builder(program, module),
        kernels(kernels),
        buckets(builder, placement, gradients, bucketBytes, sumsInAnyOrder) {}

  /// What is lowered from here on goes to a new list.
  void beginList(ListKind kind, int64_t stage = 0) {
    buckets.flush();
    builder.beginList(kind, stage);
  }

  Placement placement;
  ProgramBuilder builder;
  Kernels &kernels; // of all programs
  PartInputs inputs{placement};
  ReducedGradients gradients{placement};
  Sums sums{builder, placement};
  Copies copies{builder, placement, inputs, sums};
  Gaps gaps{builder, placement};
  Buckets buckets;
};

/// Views of what one op reads and writes. Behind one that has no place, all are
/// null, and so is that of no value.
class Views {
public:
  explicit Views(Lowering &to) : to(to) {}
  /// As it lies; or so that it lies like `layout`.
  ::mlir::Value of(::mlir::Value value);
  ::mlir::Value read(::mlir::Value value, const Layout &layout);
  ::mlir::Value write(::mlir::Value value, const Layout &layout);
  bool areComplete() const { return complete; }

private:
  ::mlir::Value add(::mlir::Value value,
                    ::llvm::function_ref<::mlir::FailureOr<Place>()> findPlace);

  Lowering &to;
  bool complete = true;
};

// Every op of @microbatch in order, then of @update, behind the reduction of
// the loss, then parameters, inputs and results (LowerLists.cpp,
// DescribeState.cpp). All of these fail with an error at the op.
::mlir::LogicalResult lowerMicrobatch(::mlir::func::FuncOp function,
                                      Lowering &to);
::mlir::LogicalResult lowerUpdate(::mlir::func::FuncOp function, Lowering &to);
/// What all microbatches read, in the list `step`: ops of @microbatch for which
/// nothing is left to do.
::mlir::FailureOr<::llvm::DenseSet<::mlir::Operation *>>
lowerStep(::mlir::func::FuncOp microbatch, Lowering &to);
::mlir::LogicalResult describeState(::mlir::func::FuncOp microbatch,
                                    Lowering &to);

/// Whether it is more than bytes that others write or read.
bool hasInstruction(::mlir::Operation *op);
/// An op of a list or a repeat, with what must come before and behind it.
::mlir::LogicalResult lower(::mlir::Operation *op, Lowering &to);
/// That op's own instruction.
::mlir::LogicalResult lowerInstruction(::mlir::Operation *op, Lowering &to);

::mlir::LogicalResult emit(const ProductParts &product, Lowering &to);

/// For a part that could not be made in its place.
::mlir::LogicalResult copyUnlessThere(::mlir::Location loc, ::mlir::Value value,
                                      const Place &wanted, Lowering &to);
/// Gives the matrices of a product ([batch, rows, columns]) extents that fast
/// kernels take, where there is room; see WidenProducts.cpp.
void widen(::mlir::Location loc, Place &lhs, Place &rhs, Place &dst,
           Lowering &to);

} // namespace meshwork::schedule
