// Whether two strided boxes of one buffer share an element: the one test of it,
// for the compiler that places tensors and the check of what it placed.
//
//   // Columns 0 to 3 and 4 to 7 of a matrix of 8 columns.
//   int64_t shape[] = {5, 4}, strides[] = {8, 1};
//   layout::Box columns{shape, strides};
//   layout::apart(columns, columns, 4);  // true
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace meshwork::layout {

/// Sizes and strides are positive; strides are in elements.
struct Box {
  std::span<const int64_t> shape, strides;
};

namespace detail {
/// One direction of a grid that holds two boxes: a at 0, b at `begin`.
struct Direction {
  int64_t stride;
  int64_t sizeOfA = 1, sizeOfB = 1, begin = 0;
  int64_t last() const { return std::max(sizeOfA, begin + sizeOfB) - 1; }
  bool apart() const { return begin >= sizeOfA; }
};

inline Direction &at(std::vector<Direction> &grid, int64_t stride) {
  for (Direction &direction : grid)
    if (direction.stride == stride)
      return direction;
  return grid.emplace_back(Direction{stride});
}

/// Elements from the first to past the last.
inline uint64_t spanOf(const Box &box) {
  uint64_t last = 0;
  for (size_t i = 0; i < box.shape.size(); ++i)
    last += static_cast<uint64_t>(box.shape[i] - 1) * box.strides[i];
  return last + 1;
}

/// The directions of both, the largest stride first; b lies `distance` elements
/// behind a.
inline std::vector<Direction> gridOf(const Box &a, const Box &b,
                                     int64_t distance) {
  std::vector<Direction> grid;
  at(grid, 1);
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] > 1)
      at(grid, a.strides[i]).sizeOfA = a.shape[i];
  for (size_t i = 0; i < b.shape.size(); ++i)
    if (b.shape[i] > 1)
      at(grid, b.strides[i]).sizeOfB = b.shape[i];
  std::sort(grid.begin(), grid.end(),
            [](auto &x, auto &y) { return x.stride > y.stride; });
  for (Direction &direction : grid) {
    direction.begin = distance / direction.stride;
    distance %= direction.stride;
  }
  return grid;
}

/// Boxes that lie apart in a grid where each place has one address only.
inline bool apartInGrid(const std::vector<Direction> &grid) {
  __int128 below = 0; // the furthest that smaller strides reach
  bool apart = false;
  for (auto it = grid.rbegin(); it != grid.rend(); ++it) {
    if (below >= it->stride)
      return false;
    below += static_cast<__int128>(it->last()) * it->stride;
    apart |= it->apart();
  }
  return apart;
}
} // namespace detail

/// `b` begins `distance` elements, 0 or more, behind `a`. True only when they
/// share none. Exact for boxes of one grid, such as slices of a tensor along
/// any dims; false when in doubt.
inline bool apart(const Box &a, const Box &b, int64_t distance) {
  return static_cast<uint64_t>(distance) >= detail::spanOf(a) ||
         detail::apartInGrid(detail::gridOf(a, b, distance));
}

} // namespace meshwork::layout
