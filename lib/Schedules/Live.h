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

  /// The most at once on this rank, counted in virtual stages. `firstAbove`
  /// gets the position where `limit` is first exceeded, or the rank's size.
  int32_t ofRank(const std::vector<Action> &rank, double limit,
                 size_t &firstAbove);
  /// Of each virtual stage on the ranks counted so far.
  const std::vector<int32_t> &ofStages() const { return most; }

private:
  std::vector<int32_t> now, most;
};

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_LIVE_H
