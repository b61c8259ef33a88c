#include "runtime/core/Overlap.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

/// One direction of a grid that holds two boxes: a at 0, b at `begin`.
struct Direction {
  int64_t stride;
  int64_t sizeOfA = 1, sizeOfB = 1, begin = 0;
  int64_t last() const { return std::max(sizeOfA, begin + sizeOfB) - 1; }
  bool apart() const { return begin >= sizeOfA; }
};

Direction &at(std::vector<Direction> &grid, int64_t stride) {
  for (Direction &direction : grid)
    if (direction.stride == stride)
      return direction;
  return grid.emplace_back(Direction{stride});
}

/// The directions of both, the largest stride first; b lies `distance` elements
/// behind a.
std::vector<Direction> gridOf(const ViewInfo &a, const ViewInfo &b,
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
bool apartInGrid(const std::vector<Direction> &grid) {
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
} // namespace

bool haveSameShifts(const ViewInfo &a, const ViewInfo &b) {
  if (a.shifts == b.shifts)
    return true;
  if (!a.shifts || !b.shifts || a.shifts->size() != b.shifts->size())
    return false;
  for (uint32_t i = 0; i < a.shifts->size(); ++i) {
    const plan::Shift &x = *a.shifts->Get(i), &y = *b.shifts->Get(i);
    const auto &u = orEmpty(x.axes()), &v = orEmpty(y.axes());
    if (x.bytes() != y.bytes() ||
        !std::equal(u.begin(), u.end(), v.begin(), v.end()))
      return false;
  }
  return true;
}

bool advanceAlike(const ViewInfo &a, const ViewInfo &b) {
  for (size_t i = 0; i < plan::maxRepeats; ++i)
    if ((i < a.advances.size() ? a.advances[i] : 0) !=
        (i < b.advances.size() ? b.advances[i] : 0))
      return false;
  return true;
}

bool isSameView(const ViewInfo &a, const ViewInfo &b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.dtype == b.dtype &&
         a.shape == b.shape && a.strides == b.strides && haveSameShifts(a, b) &&
         advanceAlike(a, b);
}

bool mayShareBytes(const ViewInfo &a, const ViewInfo &b) {
  if (a.buffer != b.buffer)
    return false;
  if (b.offset < a.offset)
    return mayShareBytes(b, a);
  if (!advanceAlike(a, b))
    return true;
  if (!haveSameShifts(a, b))
    return b.offset < a.offset + a.reach + a.spanBytes &&
           a.offset < b.offset + b.reach + b.spanBytes;
  if (b.offset >= a.offset + a.spanBytes)
    return false;
  if (a.dtype != b.dtype)
    return true;
  uint64_t distance = (b.offset - a.offset) / sizeOf(a.dtype);
  return !apartInGrid(gridOf(a, b, static_cast<int64_t>(distance)));
}

} // namespace meshwork::runtime
