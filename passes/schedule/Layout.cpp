#include "passes/schedule/Layout.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {
struct Loop {
  int64_t size = 1, stride = 1;
};

/// Dims of `place` as one loop; none if they are scattered.
std::optional<Loop> merge(ArrayRef<int64_t> dims, const Place &place) {
  Loop loop;
  for (int64_t dim : llvm::reverse(dims)) {
    int64_t size = place.shape[dim], stride = place.strides[dim];
    if (size == 1)
      continue;
    if (loop.size == 1)
      loop.stride = stride;
    else if (stride != loop.size * loop.stride)
      return std::nullopt;
    loop.size *= size;
  }
  return loop;
}
} // namespace

std::optional<Place> Layout::of(const Place &place) const {
  Place result = place;
  result.shape.clear();
  result.strides.clear();
  for (const Dims &dims : loops) {
    std::optional<Loop> loop = merge(dims, place);
    if (!loop)
      return std::nullopt;
    result.shape.push_back(loop->size);
    result.strides.push_back(loop->stride);
  }
  bool isDense = dense.empty() || llvm::any_of(dense, [&](int64_t loop) {
                   return result.shape[loop] == 1 || result.strides[loop] == 1;
                 });
  return isDense ? std::optional(result) : std::nullopt;
}

Layout::Dims Layout::order() const {
  Dims order;
  int64_t innermost =
      dense.empty() ? static_cast<int64_t>(loops.size()) - 1 : dense.back();
  for (auto [i, dims] : llvm::enumerate(loops))
    if (static_cast<int64_t>(i) != innermost)
      llvm::append_range(order, dims);
  llvm::append_range(order, loops[innermost]);
  return order;
}

Layout rowsLayout(int64_t rank, int64_t split) {
  Layout layout{{{}, {}}, {1}};
  for (int64_t dim = 0; dim < rank; ++dim)
    layout.loops[dim < split ? 0 : 1].push_back(dim);
  return layout;
}

Layout flatLayout(int64_t rank) {
  return {{llvm::to_vector_of<int64_t, 4>(llvm::seq(rank))}, {0}};
}

Layout separateLayout(int64_t rank) {
  Layout layout;
  for (int64_t dim = 0; dim < rank; ++dim)
    layout.loops.push_back({dim});
  layout.dense = {rank - 1};
  return layout;
}

Layout slabLayout(int64_t rank, int64_t dim) {
  Layout layout{{{}, {dim}, {}}, {}};
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim)
      layout.loops[other < dim ? 0 : 2].push_back(other);
  return layout;
}

SmallVector<CopyLoop> copyLoops(const Place &from, const Place &to) {
  SmallVector<CopyLoop> loops, merged;
  for (auto [size, source, target] :
       llvm::zip_equal(from.shape, from.strides, to.strides))
    if (size > 1)
      loops.push_back({size, source, target});
  llvm::sort(loops, [](const CopyLoop &a, const CopyLoop &b) {
    return std::pair(a.to, a.from) > std::pair(b.to, b.from);
  });
  for (const CopyLoop &loop : loops) {
    bool follows = !merged.empty() &&
                   merged.back().from == loop.size * loop.from &&
                   merged.back().to == loop.size * loop.to;
    if (follows)
      merged.back() = {merged.back().size * loop.size, loop.from, loop.to};
    else
      merged.push_back(loop);
  }
  return merged;
}

} // namespace meshwork::schedule
