// Attention `shared ring`: each rank's queries stay, and the keys of one rank
// after the other visit them. In hop t rank r has those of rank r - t, which the
// rank before it passes on; the partial results are merged by their log-sum-exp.
//
//   %o1, %l1 = transformer.attention %q, %k, %v positions(%own) keys(%own) of 8
//   %k1 = mesh.permute %k sources [1, 0] over ["cp"]
//   %o2, %l2 = transformer.attention %q, %k1, %v1 positions(%own) keys(%hop1) of 8
//   %lse = log(exp(%l1) + exp(%l2));  %o = %o1 exp(%l1 - %lse) + %o2 exp(%l2 - %lse)
//
// Backward, a rank's own keys come last: the gradients of the others' travel on
// with their keys and are added to in each hop, and the last hop takes them home.
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

  int64_t ranks() const { return static_cast<int64_t>(held.size()); }
  /// The last hop that brings keys to some rank that sees one of them.
  int64_t lastHop() const { return last; }
  /// From where each rank receives keys in a hop, 1 or more: from the rank
  /// before it, or -1 where neither it nor those behind it need them.
  std::vector<int64_t> keySources(int64_t hop) const;
  /// And sums for the keys that it has in this hop, 2 or more: of the ranks that
  /// saw them before.
  std::vector<int64_t> sumSources(int64_t hop) const;
  /// At the end, sums for its own keys.
  std::vector<int64_t> homeSources() const;

private:
  int64_t owner(int64_t rank, int64_t hop) const;
  /// Whether a query of `rank` sees a key that it has in this hop.
  bool sees(int64_t rank, int64_t hop) const;
  bool hasSums(int64_t rank, int64_t hop) const;

  std::vector<std::vector<layout::Range>> held; // by rank
  bool causal;
  int64_t window, last = 0;
};

/// Replaces `op`, of local types by now, whose positions are there, by its hops.
/// Ranks along `axes` share a sequence of `size`. Returns what stands for its
/// results.
::llvm::SmallVector<::mlir::Value> expandRing(::mlir::Operation *op,
                                              mesh::MeshAttr attr,
                                              const sharding::Mesh &mesh,
                                              const sharding::Axes &axes,
                                              int64_t size);

/// Attention, or its gradient, `shared ring`.
bool isRing(::mlir::Operation *op);

} // namespace meshwork::partition
