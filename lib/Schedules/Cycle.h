// The shortest cycle of waits. Internal to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_CYCLE_H
#define MESHWORK_LIB_SCHEDULES_CYCLE_H

#include "lib/Schedules/Waits.h"

#include <vector>

namespace meshwork::schedules {

struct Cycle {
  /// `action` waits for the first action of the next step.
  struct Step {
    uint32_t action = 0;
    uint32_t waitsFor = 0;
    Why why = Why::order;
  };
  std::vector<Step> steps;
  /// False where the graph was too large to be sure.
  bool isShortest = true;
};

/// Of a graph in which some nodes are `never` reached. Waits are counted; what
/// stands before on the same rank, however far, is part of one.
Cycle shortestCycle(const Waits &waits, const std::vector<double> &times);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_CYCLE_H
