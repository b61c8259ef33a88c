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
};

/// Adds SEND and RECV over every edge between ranks, receives in time but not
/// all at the front, and GATHER, FREE, REDUCE as asked. The result passes
/// `judge`, deadlock included.
absl::StatusOr<Table> lower(const Table &table, const LowerOptions &options);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LOWER_H
