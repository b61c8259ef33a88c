// Which part of a tensor each rank of a mesh holds.
//
//   Mesh mesh{{{"dp", 2}, {"tp", 4}}};
//   Sharding s{{{0}, {1}}};                        // [{"dp"}, {"tp"}]
//   localShape(mesh, {6, 10}, s);                  // {3, 3}
//   rangesOf(mesh, 10, {1}, /*rank=*/3);           // {9, 1, 0}: one of 3
//
// Per axis a tensor is split on one dim, partial, or replicated (not named).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwork/Plan/Ranges.h"

namespace meshwork::sharding {

using layout::DimLayout;

/// Index into Mesh::axes; where it splits a dim, with the layout of the parts.
/// Compares as the index: an axis has one role in a sharding.
struct AxisId {
  constexpr AxisId(uint32_t index = 0, DimLayout layout = DimLayout::block)
      : index(index), layout(layout) {}
  constexpr operator uint32_t() const { return index; }
  AxisId &operator++() {
    ++index;
    return *this;
  }

  uint32_t index;
  DimLayout layout;
};

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
  /// The axes that split each dim, major first. Neighbours of a layout are one
  /// run: they split the dim together.
  std::vector<std::vector<AxisId>> dims;
  /// Each rank of these axes holds a summand (for max: a candidate) of the
  /// value. A set; the order means nothing.
  std::vector<AxisId> partial;
  /// Means nothing when `partial` is empty.
  Reduction reduction = Reduction::sum;

  /// As Shardy writes it: `[{"dp"}, {"tp", "x"}, {}] partial sum {"y"}`; a
  /// layout other than blocks stands behind its axis.
  std::string text(const Mesh &mesh) const;
};

/// The same axes in the same order and the same layouts.
bool sameDim(const std::vector<AxisId> &a, const std::vector<AxisId> &b);
bool sameDims(const std::vector<std::vector<AxisId>> &a,
              const std::vector<std::vector<AxisId>> &b);
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

/// Axes from `first` on that split a dim together: one, or a run of a layout.
size_t runLength(const std::vector<AxisId> &axes, size_t first);
/// How many axes of both from the major end on are the same; a run is
/// the same as a whole or not at all.
size_t sharedMajor(const std::vector<AxisId> &a, const std::vector<AxisId> &b);

/// How `rank` takes part in each split of a dim over `axes`.
std::vector<layout::Cut> cutsOf(const Mesh &mesh,
                                const std::vector<AxisId> &axes, int64_t rank);

/// How long the part of a dim of `size` elements is on every rank. A dim is
/// split axis by axis, major first: n elements over N ranks make blocks of
/// ceil(n / N), of which the last ones are short or empty. So gathering the
/// minor axis restores exactly the block of its parent, at most with elements
/// behind its end that are cut off. Storage has this length on all ranks; what
/// lies behind rangesOf is padding of any value.
int64_t localSize(const Mesh &mesh, int64_t size,
                  const std::vector<AxisId> &axes);

std::vector<int64_t> localShape(const Mesh &mesh,
                                const std::vector<int64_t> &shape,
                                const Sharding &sharding);

/// Which elements of a dim `rank` holds, from the start of its storage on; see
/// layout::ranges.
std::vector<layout::Range> rangesOf(const Mesh &mesh, int64_t size,
                                    const std::vector<AxisId> &axes,
                                    int64_t rank);

} // namespace meshwork::sharding
