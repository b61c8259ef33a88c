// The list `step`: what all microbatches read is made once, before them.
#pragma once

#include "passes/schedule/Lowering.h"

namespace meshwork::schedule {

/// Finds the ops of @microbatch that go there, and lowers them.
class StepList {
public:
  StepList(::mlir::func::FuncOp microbatch, Lowering &to);

  /// All that is of the step, in the order of the program.
  ::mlir::LogicalResult lower(::mlir::Block &body);
  /// Whether nothing is left to do for `op`.
  bool has(::mlir::Operation *op) const { return lowered.contains(op); }

private:
  bool isOfStep(::mlir::Operation *op) const;
  ::mlir::LogicalResult lower(::mlir::Operation *op);
  ::mlir::LogicalResult find(::mlir::Operation *user, ::mlir::Value operand);
  Place placeOf(::mlir::Value value);

  Lowering &to;
  ::llvm::DenseSet<::mlir::Value> known; // what is there when a step begins
  ::llvm::DenseSet<::mlir::Operation *> lowered;
};

} // namespace meshwork::schedule
