// What each step of lowering adds to a table.
#ifndef MESHWORK_LIB_SCHEDULES_LOWERPARTS_H
#define MESHWORK_LIB_SCHEDULES_LOWERPARTS_H

#include "lib/Schedules/Lower.h"
#include "lib/Schedules/Simulate.h"

#include <vector>

namespace meshwork::schedules {

/// An action to come before the `before`-th of its rank.
struct Addition {
  size_t before = 0;
  Action action;
};
/// Of each rank; of one place in their order.
using Additions = std::vector<std::vector<Addition>>;

/// SEND and RECV, given when the table's actions run.
Additions transfersOf(const Table &table, const Timeline &timeline);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LOWERPARTS_H
