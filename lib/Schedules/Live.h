// How many microbatches are alive. Internal to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_LIVE_H
#define MESHWORK_LIB_SCHEDULES_LIVE_H

#include "lib/Schedules/Table.h"

#include <cstddef>
#include <vector>

namespace meshwork::schedules {

/// The position after the last action that starts together with `position`.
size_t endOfGroup(const std::vector<Action> &rank, size_t position);

/// Counts the microbatches that are alive on one rank after another: from F to
/// the end of B or W. What starts together is alive together.
class LiveCount {
public:
  explicit LiveCount(size_t stages) : now(stages), most(stages) {}

  /// The most at once on this rank, counted in virtual stages.
  int32_t ofRank(const std::vector<Action> &rank);
  /// Of each virtual stage on the ranks counted so far.
  const std::vector<int32_t> &ofStages() const { return most; }

private:
  std::vector<int32_t> now, most;
};

/// What a rank keeps: a microbatch counts 1 from F to the end of B or I, and
/// `stash` from then to the end of W.
struct Kept {
  double most = 0;
  /// The F where `limit` is first exceeded, or the rank's size.
  size_t firstAbove = 0;
};
Kept keptBy(const std::vector<Action> &rank, double stash, double limit);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LIVE_H
