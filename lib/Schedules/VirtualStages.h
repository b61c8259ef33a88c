// How many virtual stages a rank best has.
#ifndef MESHWORK_LIB_SCHEDULES_VIRTUALSTAGES_H
#define MESHWORK_LIB_SCHEDULES_VIRTUALSTAGES_H

#include "lib/Schedules/Generate.h"

namespace meshwork::schedules {

/// A table, and what its actions take and may keep, counted in its own virtual
/// stages.
struct Chosen {
  Table table;
  Costs costs;
  double memory = 0;
};

/// Of the tables with 1, 2 and 4 virtual stages a rank the one that ends first;
/// where several do, that with the fewest. `wanted` says what a rank with one
/// stage takes and may keep, and has no number of virtual stages. With v of
/// them each takes a v-th, a transfer takes as long as before, and v times as
/// many may be kept. More than 1 are tried where all stages take the same
/// times, since nothing tells how uneven ones are cut.
absl::StatusOr<Chosen> chooseVirtualStages(const Wanted &wanted);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_VIRTUALSTAGES_H
