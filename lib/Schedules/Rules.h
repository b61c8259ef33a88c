// What ranks like to do next under the known schedules. All of these wait for
// the one action that is next, so their tables do not depend on costs.
#ifndef MESHWORK_LIB_SCHEDULES_RULES_H
#define MESHWORK_LIB_SCHEDULES_RULES_H

#include "lib/Schedules/ListScheduler.h"

#include <memory>

namespace meshwork::schedules {

/// Of one rank: F until `alive` of them wait for their I or B, then one I or B
/// for each F.
struct Limits {
  int32_t alive = 0;
  /// I and W instead of B; a W begins once more than `lag` are due.
  bool split = false;
  int32_t lag = 0;
};

/// Which of a rank's stages has the rank's n-th F and I or B: groups of
/// microbatches visit its stages in turn, and in reverse.
struct Turns {
  std::vector<int32_t> forward, backward;
};

/// GPipe, 1F1B, interleaved 1F1B, ZB-H1 and ZB-H2.
std::unique_ptr<Rule> limitsRule(const Work &work, std::vector<Limits> limits,
                                 std::vector<Turns> turns);

/// The actions of each rank in their order; of each kind and stage in the order
/// of microbatches. Those that the work does not have are left out.
std::unique_ptr<Rule> givenOrder(const Work &work,
                                 const std::vector<std::vector<Wish>> &order);

/// The orders of the V-shaped schedules, whose rank r holds the stages r and
/// 2 ranks - 1 - r. They are published for microbatches >= 2 ranks - 1 and
/// >= 2 ranks; for fewer, take the order for so many and leave out the rest.
std::vector<std::vector<Wish>> zbV(int32_t ranks, int32_t microbatches);
std::vector<std::vector<Wish>> dualPipeV(int32_t ranks, int32_t microbatches);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_RULES_H
