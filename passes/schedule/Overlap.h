// How overlap is decided and written.
#pragma once

#include "passes/schedule/Costs.h"
#include "passes/schedule/Order.h"

namespace meshwork::schedule {

/// What is known of one program.
struct OverlapSettings {
  bool always; // even if no time is gained
  const plan::Program &tables;
  Costs costs;
  const Uses &uses;

  double seconds(::mlir::Operation *op) const { return costs.seconds(op); }
  /// Where moving data takes the cores that compute, nothing is hidden.
  bool pays(::mlir::Operation *op, double hidden) const {
    return always || (!costs.takesCores(op) &&
                      std::min(hidden, seconds(op)) > costs.machine().handOver);
  }
};

/// The instructions of a list; a repeat is one here.
::llvm::SmallVector<::mlir::Operation *> stepsOf(ListOp list);

/// Whether ranks that run other programs take part: other stages of a pipeline.
/// All must come to it in one order and on one channel, so what each program
/// decides by its own times does not touch it.
bool meetsOtherPrograms(CollectiveOp collective);

/// Sums of gradients that `update` begins with run in the step's last action of
/// the list that completes them, under the rest of it.
void moveGradientSums(ProgramOp program, const OverlapSettings &settings);

/// Waits for the collectives among `instructions`, those of `block` in order,
/// that have a channel.
void insertWaits(::mlir::Block &block, const Uses &uses,
                 ::llvm::ArrayRef<::mlir::Operation *> instructions);

} // namespace meshwork::schedule
