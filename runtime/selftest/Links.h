// How fast pairs of ranks send to each other.
#pragma once

#include "runtime/comm/Transport.h"

namespace meshwork::runtime {

struct PairLink {
  uint32_t from = 0, to = 0; // from < to
  double latency = 0;        // seconds from one to the other
  double bandwidth = 0;      // bytes a second, each way in turn
};

/// Who meets whom, round after round: in each, everyone has one partner, or
/// none where they are odd. `members` are numbered by their places.
std::vector<std::vector<std::pair<uint32_t, uint32_t>>>
roundsOf(uint32_t members);

/// What measureLinks() will prepare on `rank`, with addresses that mean
/// nothing.
std::vector<PairRequest>
linksToMeasure(uint32_t rank, const std::vector<std::vector<uint32_t>> &groups,
               size_t mostRounds);

/// By all ranks together; of `groups`, which are disjoint, all pairs within
/// each. In a round no rank is in two pairs. Of more than `mostRounds` rounds
/// the first ones run. The result is the same on every rank.
absl::StatusOr<std::vector<PairLink>>
measureLinks(Transport &transport, uint32_t rank,
             const std::vector<std::vector<uint32_t>> &groups,
             size_t mostRounds);

} // namespace meshwork::runtime
