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
/// One direction of a grid that holds two boxes: a at 0, b at `begin`, which
/// may be negative.
struct Direction {
  int64_t stride;
  int64_t sizeOfA = 1, sizeOfB = 1, begin = 0;
  int64_t extent() const {
    return std::max(sizeOfA, begin + sizeOfB) - std::min<int64_t>(0, begin) - 1;
  }
  bool apart() const { return begin >= sizeOfA || begin + sizeOfB <= 0; }
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

/// The directions of both, the largest stride first.
inline std::vector<Direction> gridOf(const Box &a, const Box &b) {
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
  return grid;
}

/// Boxes that lie apart in a grid where each place has one address only.
inline bool apartInGrid(const std::vector<Direction> &grid) {
  __int128 below = 0; // the furthest that smaller strides reach
  bool apart = false;
  for (auto it = grid.rbegin(); it != grid.rend(); ++it) {
    if (below >= it->stride)
      return false;
    below += static_cast<__int128>(it->extent()) * it->stride;
    apart |= it->apart();
  }
  return apart;
}

/// Finds a grid in which b begins `distance` elements behind a, from direction
/// `i` on. Columns 8 to 11 of rows 0 to 3, and all of rows 4 and 5, of 12
/// columns: b begins 40 elements behind a. That is 4 rows further and 8 columns
/// back, not 3 rows and 4 columns further. `tries` bounds the work on what a
/// file holds.
inline bool apartFrom(size_t i, int64_t distance, std::vector<Direction> &grid,
                      int &tries) {
  if (i == grid.size())
    return --tries >= 0 && apartInGrid(grid);
  Direction &direction = grid[i];
  int64_t rest = distance % direction.stride;
  if (rest < 0)
    rest += direction.stride;
  direction.begin = (distance - rest) / direction.stride;
  if (apartFrom(i + 1, rest, grid, tries))
    return true;
  if (rest == 0 || tries <= 0)
    return false;
  ++direction.begin;
  return apartFrom(i + 1, rest - direction.stride, grid, tries);
}
} // namespace detail

/// `b` begins `distance` elements, 0 or more, behind `a`. True only when they
/// share none. Exact for boxes of one grid, such as slices of a tensor along
/// any dims; false when in doubt.
inline bool apart(const Box &a, const Box &b, int64_t distance) {
  if (static_cast<uint64_t>(distance) >= detail::spanOf(a))
    return true;
  std::vector<detail::Direction> grid = detail::gridOf(a, b);
  int tries = 64;
  return detail::apartFrom(0, distance, grid, tries);
}

} // namespace meshwork::layout
