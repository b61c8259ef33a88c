// The plan of a ring of ranks that share a sequence: which of them meet, and
// who passes keys and sums on to whom. What is built of it: ExpandRing.h.
#pragma once

#include "passes/sharding/Shardings.h"

namespace meshwork::partition {

/// Which pairs of ranks meet in a ring: known from the ranges that they hold,
/// causality and the window. Documents are data, and empty no hop.
class Ring {
public:
  /// Ranks along `axes` share `size` queries and keys. Query i sees key j when
  /// j <= i (`causal`) and i - j < window (if that is positive).
  Ring(const sharding::Mesh &mesh, const sharding::Axes &axes, int64_t size,
       bool causal, int64_t window);

  /// A stop is a distance t at which the keys of rank r - t visit rank r and
  /// some rank sees one of them. Stop 0 is at home; distances that nobody needs
  /// are none.
  size_t numStops() const { return stops.size(); }
  int64_t distance(size_t stop) const { return stops[stop]; }
  /// Whether keys come to a stop, 1 or more, from home: the ranks beside it did
  /// not have them.
  bool comeFromHome(size_t stop) const {
    return stop == 1 || stops[stop - 1] + 1 != stops[stop];
  }
  /// From where each rank receives keys then: from their home, or the rank that
  /// had them at the stop before; -1 where no rank needs them any more.
  std::vector<int64_t> keySources(size_t stop) const;
  /// And sums for the keys that it has at this stop, 2 or more: of the ranks
  /// that saw them before.
  std::vector<int64_t> sumSources(size_t stop) const;
  /// At the end, sums for its own keys.
  std::vector<int64_t> homeSources() const;

private:
  /// The rank `distance` places behind `rank`; of a negative one before it.
  int64_t behind(int64_t rank, int64_t distance) const;
  /// Whether a query of `rank` sees a key of the rank `distance` before it.
  bool sees(int64_t rank, int64_t distance) const;
  void findStops();
  /// From stop to stop, so that all of it takes time quadratic in the ranks.
  void follow();
  int64_t ranks() const { return static_cast<int64_t>(held.size()); }

  std::vector<std::vector<layout::Range>> held; // by rank
  bool causal;
  int64_t window;
  std::vector<int64_t> stops = {0}; // distances
  using OfRank = std::vector<bool>;
  /// By stop: whether a rank, or one that it passes keys on to, needs them
  /// there; whether there are sums for the keys that it has there.
  std::vector<OfRank> needed, summed;
};

} // namespace meshwork::partition
