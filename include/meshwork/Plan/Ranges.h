// Which elements of a dim a rank stores, and in which order: the one definition
// of how ranks share a dim, for the compiler and the runtime.
//
//   // 10 elements, zigzag over 2 ranks: chunks of 3; rank 0 has the first and
//   // the last, of which one element is there.
//   Cut cut{.parts = 2, .index = 0, .layout = DimLayout::zigzag};
//   ranges(10, {&cut, 1});      // {0, 3, 0}, {9, 1, 3}
//   storedSize(10, {&cut, 1});  // 6, on each rank
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshwork/Plan/Plan.h"

namespace meshwork::layout {

/// How N ranks share n elements.
///   block   Part i is block i of ceil(n / N).
///   zigzag  Part i is chunks i and 2N - 1 - i of ceil(n / 2N), in this order.
///           Under a causal mask all parts cost the same.
using DimLayout = plan::Layout;

/// As texts write it.
inline const char *nameOf(DimLayout layout) {
  return plan::EnumNameLayout(layout);
}
/// " in zigzag" behind an axis or a dim; "" of blocks.
inline std::string suffixOf(DimLayout layout) {
  return layout == DimLayout::block ? "" : std::string(" in ") + nameOf(layout);
}
/// Whether axes of these layouts, side by side, split a dim together.
inline bool areOneRun(DimLayout a, DimLayout b) {
  return a == b && a != DimLayout::block;
}

/// One split of a dim: this rank has part `index` of `parts`. A block is cut
/// for each axis, a zigzag once for all axes of its run.
struct Cut {
  int64_t parts = 1; // 1 or more; of 1 the layout means nothing
  int64_t index = 0;
  DimLayout layout = DimLayout::block;
};

/// Adds the split over one more axis: to the cut before it where both are of
/// one run.
inline void addCut(std::vector<Cut> &cuts, const Cut &cut) {
  if (!cuts.empty() && areOneRun(cuts.back().layout, cut.layout))
    cuts.back() = {cuts.back().parts * cut.parts,
                   cuts.back().index * cut.parts + cut.index, cut.layout};
  else
    cuts.push_back(cut);
}

/// `count` elements from `begin` of the whole dim on, at `offset` of the part.
struct Range {
  int64_t begin = 0, count = 0, offset = 0;
  friend bool operator==(const Range &, const Range &) = default;
};

/// Elements of what one cut makes of a storage of `size`: a block or a chunk.
inline int64_t pieceSize(int64_t size, const Cut &cut) {
  int64_t pieces = cut.layout == DimLayout::zigzag ? 2 * cut.parts : cut.parts;
  return size / pieces + (size % pieces != 0);
}

/// How long the part of a dim of `size` elements is on every rank. A further
/// cut cuts what is stored, so gathering its parts restores exactly that.
inline int64_t storedSize(int64_t size, std::span<const Cut> cuts) {
  for (const Cut &cut : cuts)
    if (cut.parts > 1)
      size = pieceSize(size, cut) * (cut.layout == DimLayout::zigzag ? 2 : 1);
  return size;
}

/// Adds to `to` what `held` has in the storage [first, first + length), which
/// moves to `offset`. Ranges that continue each other become one.
inline void addWindow(const std::vector<Range> &held, int64_t first,
                      int64_t length, int64_t offset, std::vector<Range> &to) {
  for (const Range &range : held) {
    int64_t skipped = std::max<int64_t>(first - range.offset, 0);
    Range next{range.begin + skipped, 0,
               range.offset + skipped - first + offset};
    next.count = std::min(range.count - skipped, offset + length - next.offset);
    if (next.count <= 0)
      continue;
    if (!to.empty() && to.back().begin + to.back().count == next.begin &&
        to.back().offset + to.back().count == next.offset)
      to.back().count += next.count;
    else
      to.push_back(next);
  }
}

/// In the order of storage, which they fill from its start on: what is behind
/// them, up to storedSize, is padding of any value. At least one; a rank
/// without elements has one of none, that begins where its first element would.
inline std::vector<Range> ranges(int64_t size, std::span<const Cut> cuts) {
  std::vector<Range> held = {{0, size, 0}};
  for (const Cut &cut : cuts) {
    if (cut.parts == 1)
      continue;
    int64_t piece = pieceSize(size, cut), first = cut.index * piece;
    size = storedSize(size, {&cut, 1});
    std::vector<Range> own;
    addWindow(held, first, piece, 0, own);
    if (cut.layout == DimLayout::zigzag)
      addWindow(held, (2 * cut.parts - 1 - cut.index) * piece, piece, piece,
                own);
    if (own.empty()) {
      auto last = std::find_if(held.rbegin(), held.rend(), [&](const Range &r) {
        return r.offset <= first;
      });
      own.push_back({last->begin + first - last->offset, 0, 0});
    }
    held = std::move(own);
  }
  return held;
}

/// Which element of the whole is at the place `stored` of the part; -1 for
/// padding.
inline int64_t positionOf(std::span<const Range> ranges, int64_t stored) {
  for (const Range &range : ranges)
    if (stored < range.offset + range.count)
      return range.begin + stored - range.offset;
  return -1;
}

/// Elements of the whole that they hold.
inline int64_t countOf(std::span<const Range> ranges) {
  int64_t count = 0;
  for (const Range &range : ranges)
    count += range.count;
  return count;
}

} // namespace meshwork::layout
