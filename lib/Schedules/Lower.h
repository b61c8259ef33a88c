// Completes a table of computing actions with what they need.
#ifndef MESHWORK_LIB_SCHEDULES_LOWER_H
#define MESHWORK_LIB_SCHEDULES_LOWER_H

#include "lib/Schedules/Table.h"

#include "absl/status/statusor.h"

namespace meshwork::schedules {

/// Adds SEND and RECV over every edge between ranks, unless the table has any
/// already. `costs`, by which receives are placed, may be empty: F, I and W
/// then take 1, transfers a little. A receive is posted before the work that
/// its rank does when the other end sends, so it keeps nobody waiting, and no
/// earlier. All ranks post their transfers in one order, that of the sends, so
/// the result passes `judge` if `table` does, with transfers that complete in
/// order too.
absl::StatusOr<Table> lower(const Table &table, const Costs &costs = {});

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LOWER_H
