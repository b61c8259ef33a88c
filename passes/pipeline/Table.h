// The action table of a plan's pipeline, for the passes that go by it.
#pragma once

#include "lib/Schedules/Table.h"
#include "mlir/IR/Operation.h"
#include "mlir/Support/LogicalResult.h"
#include <string>

namespace meshwork::pipeline {

struct TableOptions {
  std::string schedule; // a name, or lines of CSV with / between them
  int64_t ranks = 1;
  int64_t virtualStages = 0; // 0: the schedule's own
  int64_t microbatches = 1;
  /// What "auto" goes by: of each virtual stage what F, I, W and the transfer
  /// to the next one take, in one unit; none: F, I and W take 1.
  ::llvm::ArrayRef<int64_t> times = {};
  /// The most microbatches that a rank keeps under "auto", counted in virtual
  /// stages; 0: any.
  int64_t kept = 0;
};

/// F, B, I and W alone, one after the other: some B in two parts are all of
/// them in two. An error at the spec's key.
::mlir::FailureOr<schedules::Table> computeTable(const TableOptions &options,
                                                 ::mlir::Operation *module);
/// Whether gradients of weights (W) are work of their own.
bool splitsBackward(const schedules::Table &table);
/// The table with SEND and RECV, which `times` place; without them, unit times.
::mlir::FailureOr<schedules::Table> withTransfers(const schedules::Table &table,
                                                  const TableOptions &options,
                                                  ::mlir::Operation *module);

} // namespace meshwork::pipeline
