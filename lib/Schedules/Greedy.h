// A rule that goes by time, with numbers for a search to choose.
#ifndef MESHWORK_LIB_SCHEDULES_GREEDY_H
#define MESHWORK_LIB_SCHEDULES_GREEDY_H

#include "lib/Schedules/ListScheduler.h"

#include <memory>

namespace meshwork::schedules {

/// How one rank chooses. It likes an I best, then an F, then a W. Of its stages
/// it prefers the later for an I, the earlier for a W.
struct Taste {
  /// The most that is kept, in microbatches of a virtual stage: one from F to
  /// I, `stash` of one from I to W.
  double memory = 0, stash = 1;
  /// The most that wait for their I.
  int32_t alive = 0;
  /// How long it rather waits for an I or an F than does a W.
  double gradPatience = 0, forwardPatience = 0;
  /// With more W due than this it does a W first.
  int32_t lag = 0;
  /// An F of the earlier of its stages first, else of the later.
  bool earlyFirst = false;
};

std::unique_ptr<Rule> greedyRule(const Work &work, std::vector<Taste> tastes);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_GREEDY_H
