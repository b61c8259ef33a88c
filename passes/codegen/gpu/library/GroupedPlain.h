// f32 by multiply-adds, for accuracy: a thread has every 8th row and every 16th
// column of the tile.
#pragma once

#include "passes/codegen/gpu/library/GroupedTile.h"

namespace meshwork::grouped {

/// An operand in shared memory: a line for each place of the sum.
template <bool alongSum> struct PlainOperand {
  static constexpr i32 width = alongSum ? plainDepth : tileSize; // of a line
  static constexpr i32 lines = alongSum ? tileSize : plainDepth;
  static constexpr i32 linesAtOnce = threads / width;

  static MESHWORK_INLINE void load(u32 tile, const Operand<float> &from,
                                   i32 first) {
    float *to = sharedPointer<float>(tile);
    i32 thread = static_cast<i32>(threadInBlock()), at = thread % width;
    i32 linesLeft = alongSum ? from.across : from.depth - first,
        left = alongSum ? from.depth - first : from.across;
    const float *data =
        from.data + (alongSum ? first : first * from.stride) + at;
#pragma unroll
    for (i32 next = 0; next < lines; next += linesAtOnce) {
      i32 line = thread / width + next;
      bool exists = at < left && line < linesLeft;
      float value = exists ? data[line * from.stride] : 0.0f;
      to[alongSum ? at * plainLine + line : line * plainLine + at] = value;
    }
  }
};

template <bool leftAlong, bool rightAlong> struct PlainEngine {
  using Element = float;
  using Left = PlainOperand<leftAlong>;
  using Right = PlainOperand<rightAlong>;
  static constexpr i32 depth = plainDepth, stages = plainStages;
  static constexpr u32 operandBytes = plainLine * depth * 4,
                       stageBytes = 2 * operandBytes;
  static constexpr i32 rows = tileSize / 8, columns = tileSize / 16;
  static constexpr i32 neighbours = 1;

  static MESHWORK_INLINE i32 rowOf(i32 i) {
    return static_cast<i32>(threadInBlock() / 16) + 8 * i;
  }
  static MESHWORK_INLINE i32 columnOf(i32 j) {
    return static_cast<i32>(threadInBlock() % 16) + 16 * j;
  }

  static MESHWORK_INLINE void accumulate(float (&sums)[rows][columns],
                                         u32 stage) {
    const float *own = sharedPointer<float>(stage) + rowOf(0),
                *other =
                    sharedPointer<float>(stage + operandBytes) + columnOf(0);
#pragma unroll 2 // All 16 would make a plan five times as long.
    for (i32 k = 0; k < depth; ++k) {
      float a[rows], b[columns];
#pragma unroll
      for (i32 i = 0; i < rows; ++i)
        a[i] = own[k * plainLine + 8 * i];
#pragma unroll
      for (i32 j = 0; j < columns; ++j)
        b[j] = other[k * plainLine + 16 * j];
#pragma unroll
      for (i32 i = 0; i < rows; ++i)
#pragma unroll
        for (i32 j = 0; j < columns; ++j)
          sums[i][j] = __builtin_fmaf(a[i], b[j], sums[i][j]);
    }
  }
};

} // namespace meshwork::grouped
