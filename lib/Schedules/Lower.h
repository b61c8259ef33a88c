// Completes a table of computing actions with what they need.
#ifndef MESHWORK_LIB_SCHEDULES_LOWER_H
#define MESHWORK_LIB_SCHEDULES_LOWER_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

namespace meshwork::schedules {

struct LowerOptions {
  /// Parameters are sharded: GATHER, FREE around the work of a stage.
  bool gather = false;
  /// Gradients are summed once a step: REDUCE after a stage's last gradient.
  bool reduce = false;
  /// A stage's parameters are gathered this many other stages' turns early.
  int32_t lookahead = 1;
  /// By which receives are placed; empty: F, I and W take 1, transfers nothing.
  Costs costs = {};
};

/// Adds SEND and RECV over every edge between ranks, and GATHER, FREE, REDUCE
/// as asked; what the table has of these already stays as it is. A receive is
/// posted before the work that its rank does when the other end sends, so it
/// keeps nobody waiting, and no earlier. All ranks post their transfers in one
/// order, that of the sends, so the result passes `judge` if `table` does, with
/// transfers that complete in order too.
absl::StatusOr<Table> lower(const Table &table, const LowerOptions &options);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LOWER_H
