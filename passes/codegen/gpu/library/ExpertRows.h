// Which rows are whose, of products of experts. `begins` may hold anything: an
// element counts as the largest up to it, within [0, rows].
#pragma once

#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {

struct Begins {
  const i32 *data; // one more than experts
  i32 experts, rows;

  /// By itself. Behind the last is the end of all rows.
  __device__ i32 raw(i32 index) const {
    return index <= experts ? smallerOf(largerOf(data[index], 0), rows) : rows;
  }
  /// As it counts; all lanes ask for the same.
  __device__ i32 at(i32 index) const {
    i32 largest = 0;
    for (i32 i = laneOfWarp(); i <= index; i += lanes)
      largest = largerOf(largest, raw(i));
#pragma unroll
    for (i32 step = lanes / 2; step > 0; step /= 2)
      largest = largerOf(
          largest, static_cast<i32>(exchange(static_cast<u32>(largest), step)));
    return largest;
  }
};

/// Some rows of one expert; `expert` is -1 before all of them, and their number
/// behind. Without rows there is no such tile.
struct RowTile {
  i32 expert, first, count;
};

/// Tile `index` of all rows, cut into at most `size` rows of one expert each,
/// in their order. Every warp finds it by itself: a lane has an expert.
template <i32 size>
__device__ inline RowTile rowTile(const Begins &begins, i64 index) {
  i32 bound = 0;
  i64 before = 0;
  for (i32 start = 0; start < begins.experts + 2; start += lanes) {
    i32 end = largerOf(bound, largestUpTo(begins.raw(start + laneOfWarp()))),
        first = fromBefore(end, 1, bound);
    i32 tiles = (end - first + size - 1) / size, upTo = sumUpTo(tiles);
    i32 lane = firstLane(before + upTo > index);
    if (lane < lanes) {
      i32 own =
          first + static_cast<i32>(index - before - (upTo - tiles)) * size;
      own = fromLane(own, lane);
      return {start + lane - 1, own,
              smallerOf(size, fromLane(end, lane) - own)};
    }
    bound = fromLane(end, lanes - 1);
    before += fromLane(upTo, lanes - 1);
  }
  return {-1, 0, 0};
}

} // namespace meshwork
