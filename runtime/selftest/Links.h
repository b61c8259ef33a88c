// How fast pairs of ranks send to each other.
#pragma once

#include "runtime/comm/Transport.h"
#include <optional>

namespace meshwork::runtime {

struct PairLink {
  uint32_t from = 0, to = 0; // from < to
  double latency = 0;        // seconds from one to the other
  double bandwidth = 0;      // bytes a second, each way in turn
};

/// In how many rounds `members` can meet each other, each one partner a round.
uint32_t numRounds(uint32_t members);
/// Whom a member, by its number, meets in a round; nothing where they are odd
/// and it waits.
std::optional<uint32_t> partnerIn(uint32_t round, uint32_t member,
                                  uint32_t members);

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
