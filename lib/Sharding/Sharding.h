// Which part of a tensor each rank of a mesh holds.
//
//   Mesh mesh{{{"dp", 2}, {"tp", 4}}};
//   Sharding s{{{0}, {1}}};                        // [{"dp"}, {"tp"}]
//   localShape(mesh, {6, 10}, s);                  // {3, 3}
//   globalRange(mesh, 10, {1}, /*rank=*/3);        // {9, 10}: one of 3 is
//   valid
//
// Per axis a tensor is split on one dim, partial, or replicated (not named).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::sharding {

/// Index into Mesh::axes.
using AxisId = uint32_t;

/// Atomic: who needs a part of an axis splits it into several axes up front,
/// major first.
struct Axis {
  std::string name;
  int64_t size = 1;
};

/// Ranks are numbered row-major, the first axis outermost.
struct Mesh {
  std::vector<Axis> axes;

  int64_t numRanks() const;
  /// Number of ranks in a group that differs in `group` alone.
  int64_t numRanks(const std::vector<AxisId> &group) const;
  int64_t coordinate(int64_t rank, AxisId axis) const;
  /// Place of `rank` among the ranks of its group, `group` major first.
  int64_t index(int64_t rank, const std::vector<AxisId> &group) const;
  /// The rank of the same group whose place is `index`.
  int64_t withIndex(int64_t rank, const std::vector<AxisId> &group,
                    int64_t index) const;
};

enum class Reduction { sum, max };

struct Sharding {
  /// The axes that split each dim, major first.
  std::vector<std::vector<AxisId>> dims;
  /// Each rank of these axes holds a summand (for max: a candidate) of the
  /// value. A set; the order means nothing.
  std::vector<AxisId> partial;
  /// Means nothing when `partial` is empty.
  Reduction reduction = Reduction::sum;

  /// As Shardy writes it: `[{"dp"}, {"tp", "x"}, {}] partial sum {"y"}`.
  std::string text(const Mesh &mesh) const;
};

bool operator==(const Sharding &a, const Sharding &b);
inline bool operator!=(const Sharding &a, const Sharding &b) {
  return !(a == b);
}
/// Equal shardings have equal hashes.
size_t hash(const Sharding &sharding);

/// What is wrong, or an empty string: each axis has a size of 1 or more and a
/// name of its own, and there are at most 2^31 ranks.
std::string check(const Mesh &mesh);
/// What is wrong, or an empty string: as many dims as `shape`, known axes, each
/// used once. `mesh` has passed its own check.
std::string check(const Mesh &mesh, const std::vector<int64_t> &shape,
                  const Sharding &sharding);

/// The same sharding without the axes of size 1, `partial` in mesh order.
Sharding normalized(const Mesh &mesh, Sharding sharding);

/// How long the part of a dim of `size` elements is on every rank. A dim is
/// split axis by axis, major first: n elements over N ranks make blocks of
/// ceil(n / N), of which the last ones are short or empty. So gathering the
/// minor axis restores exactly the block of its parent, at most with elements
/// behind its end that are cut off. Storage has this length on all ranks; what
/// lies beyond globalRange is padding of any value.
int64_t localSize(const Mesh &mesh, int64_t size,
                  const std::vector<AxisId> &axes);

std::vector<int64_t> localShape(const Mesh &mesh,
                                const std::vector<int64_t> &shape,
                                const Sharding &sharding);

/// Elements `begin` to below `end`; empty when both are equal.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};
inline bool operator==(Range a, Range b) {
  return a.begin == b.begin && a.end == b.end;
}

/// Which elements of a dim `rank` holds, at the start of its storage.
Range globalRange(const Mesh &mesh, int64_t size,
                  const std::vector<AxisId> &axes, int64_t rank);

} // namespace meshwork::sharding
