// Links and collectives of one transport: that of the hosts, or that of GPUs.
#pragma once

#include "runtime/selftest/CollectiveChecks.h"
#include "runtime/selftest/Links.h"

namespace meshwork::runtime {

/// What is to be tried.
struct MovesToCheck {
  std::vector<uint32_t> mesh;               // for collectives
  std::vector<std::vector<uint32_t>> hosts; // ranks of each
  /// A rank of each host; none where there are too many hosts for the
  /// transport.
  std::vector<uint32_t> leaders;

  std::vector<CollectiveRequest> collectives(uint32_t rank) const;
  std::vector<PairRequest> pairs(uint32_t rank) const;
};

struct MovesFound {
  std::vector<PairLink> betweenHosts, withinHosts;
  std::vector<CollectiveCheck> collectives;

  /// For people: a line for each kind of link that there is, and one for
  /// collectives; `of` is "GPU" or "".
  std::vector<std::string> lines(const MovesToCheck &tried,
                                 const std::string &of) const;
  std::vector<std::string> wrong(const MovesToCheck &tried,
                                 const std::string &of) const;
  std::vector<std::string> slow(const std::string &of) const;
};

/// By all ranks together, with the same result on each.
absl::StatusOr<MovesFound> checkMoves(Transport &transport, uint32_t rank,
                                      const MovesToCheck &what);

} // namespace meshwork::runtime
