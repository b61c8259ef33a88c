// Attention `shared ring`: each rank's queries stay, and the keys of one rank
// after the other visit them. In hop t rank r has those of rank r - t, which
// the rank before it passes on; the partial results are merged by their
// log-sum-exp.
//
//   %o1, %l1 = transformer.attention %q, %k, %v positions(%own) keys(%own) of 8
//   %k1 = mesh.permute %k sources [1, 0] over ["cp"]
//   %o2, %l2 = transformer.attention %q, %k1, %v1 positions(%own) keys(%hop1)
//   of 8 %lse = log(exp(%l1) + exp(%l2));  %o = %o1 exp(%l1 - %lse) + %o2
//   exp(%l2 - %lse)
//
// Backward, a rank's own keys come last: the gradients of the others' travel on
// with their keys and are added to in each hop, and the last hop takes them
// home.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "lib/Sharding/Sharding.h"
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

/// Replaces `op`, of local types by now, whose positions are there, by its
/// hops. Ranks along `axes` share a sequence of `size`. Returns what stands for
/// its results.
::llvm::SmallVector<::mlir::Value> expandRing(::mlir::Operation *op,
                                              mesh::MeshAttr attr,
                                              const sharding::Mesh &mesh,
                                              const sharding::Axes &axes,
                                              int64_t size);

/// Attention, or its gradient, `shared ring`.
bool isRing(::mlir::Operation *op);

} // namespace meshwork::partition
