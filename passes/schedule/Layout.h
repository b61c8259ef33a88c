// How an instruction wants a tensor to lie, and how to make it lie so.
//
// An instruction sees a tensor as few loops, each one stride: a product sees
// [batch, rows, sum]. Most tensors lie so already. Two may not: a rank's block
// of a larger tensor (other ranks' rows lie between the rows of two samples),
// and letters of an einsum that mix rows and columns. The instruction then
// works on a copy.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// Loops of an instruction over one of its tensors, outermost first.
struct Layout {
  using Dims = ::llvm::SmallVector<int64_t, 4>;
  ::llvm::SmallVector<Dims, 4> loops; // the dims of each, outermost first
  /// Loops of which one has stride 1.
  ::llvm::SmallVector<int64_t, 2> dense;

  /// `place` with one dim for each loop; nothing when it does not lie so.
  std::optional<Place> of(const Place &place) const;
  /// All dims, in the order in which a copy has them.
  Dims order() const;
};

/// Dims up to `split` are a loop, and those from there on a dense one.
Layout rowsLayout(int64_t rank, int64_t split);
/// All dims are one dense loop.
Layout flatLayout(int64_t rank);
/// Each dim is a loop, the last one dense.
Layout separateLayout(int64_t rank);
/// The dims before `dim` are a loop, `dim` is one, and those behind it.
Layout slabLayout(int64_t rank, int64_t dim);

/// One stride of a copy, in elements.
struct CopyLoop {
  int64_t size, from, to;
};
/// The loops of a copy between places of one shape, as few as can be, from the
/// largest stride of `to` to the smallest.
::llvm::SmallVector<CopyLoop> copyLoops(const Place &from, const Place &to);

} // namespace meshwork::schedule
