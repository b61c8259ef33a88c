// bf16 on tensor cores: four warps, each 64 rows by 64 columns, which read
// each 16 x 16 square of shared memory for four products.
//
// A tile's lines lie without gaps, in chunks of 16 bytes. Eight that ldmatrix
// reads at once must lie in different banks: chunks of a line are exchanged, by
// the line's number.
#pragma once

#include "passes/codegen/gpu/library/GroupedTile.h"
#include "passes/codegen/gpu/library/Mma.h"

namespace meshwork::grouped {

/// An operand in shared memory: lines along the sum, one for each row or column
/// of the tile, or across it.
template <bool alongSum> struct MmaOperand {
  static constexpr i32 lines = alongSum ? tileSize : mmaDepth;
  static constexpr i32 chunks = (alongSum ? mmaDepth : tileSize) / 8;
  static constexpr i32 linesAtOnce = threads / chunks;

  static MESHWORK_INLINE u32 chunkAt(u32 line, u32 chunk) {
    u32 exchanged = alongSum ? line / 2 % 4 : line % 8;
    return (line * chunks + (chunk ^ exchanged)) * 16;
  }

  /// From place `first` of the sum on; zeros where nothing is.
  static MESHWORK_INLINE void load(u32 tile, const Operand<Bf16> &from,
                                   i32 first) {
    u32 thread = fresh(threadInBlock());
    i32 chunk = static_cast<i32>(thread % chunks),
        line = static_cast<i32>(thread / chunks);
    i32 left =
        alongSum ? from.depth - first - chunk * 8 : from.across - chunk * 8;
    i32 linesLeft = left <= 0 ? 0 : alongSum ? from.across : from.depth - first;
    const Bf16 *data = from.data + (alongSum ? first : first * from.stride) +
                       line * from.stride + chunk * 8;
#pragma unroll
    for (i32 next = 0; next < lines; next += linesAtOnce) {
      u32 to = tile + chunkAt(line + next, chunk);
      bool exists = line + next < linesLeft;
      if (from.aligned)
        startCopy(to, data + next * from.stride, exists);
      else
        copyElements(to, data + next * from.stride, exists ? left : 0);
    }
  }

  /// Where this lane's part of the first 16 x 16 square is, given where the
  /// warp's rows or columns begin. `asLeft`: upper and lower halves first, else
  /// those whose registers must be neighbours.
  static MESHWORK_INLINE u32 firstSquare(u32 tile, u32 lane, u32 begin,
                                         bool asLeft) {
    bool byHalves = asLeft == alongSum;
    u32 line = byHalves ? lane % 16 : lane % 8 + lane / 16 * 8,
        chunk = byHalves ? lane / 16 : lane / 8 % 2;
    return tile + (alongSum ? chunkAt(begin + line, chunk)
                            : chunkAt(line, chunk + begin / 8));
  }
  /// Square `across` from the first, and `along` the sum. Both are exchanged
  /// like the first one: it begins at a multiple of 16 lines, and of as many
  /// chunks as there are squares.
  static MESHWORK_INLINE void loadSquare(u32 (&to)[4], u32 first, i32 across,
                                         i32 along) {
    i32 line = alongSum ? across : along, chunk = alongSum ? along : across;
    u32 at = (first ^ chunk * 32) + line * 16 * chunks * 16;
    if constexpr (alongSum)
      loadMatrices(to, at);
    else
      loadTransposed(to, at);
  }
};

template <bool leftAlong, bool rightAlong> struct MmaEngine {
  using Element = Bf16;
  using Left = MmaOperand<leftAlong>;
  using Right = MmaOperand<rightAlong>;
  static constexpr i32 depth = mmaDepth, stages = mmaStages;
  static constexpr u32 operandBytes = tileSize * depth * 2,
                       stageBytes = 2 * operandBytes;
  static constexpr i32 squares = 4,
                       halves = 4; // 16 rows; 16 columns, of a warp
  static constexpr i32 rows = 2 * squares, columns = 4 * halves; // of a thread
  static constexpr i32 neighbours = 2;

  static MESHWORK_INLINE i32 warpRow() {
    return static_cast<i32>(threadInBlock() / 64 * 64);
  }
  static MESHWORK_INLINE i32 warpColumn() {
    return static_cast<i32>(threadInBlock() / 32 % 2 * 64);
  }
  static MESHWORK_INLINE i32 rowOf(i32 i) {
    return warpRow() + i / 2 * 16 + i % 2 * 8 +
           static_cast<i32>(threadInBlock() % 32 / 4);
  }
  static MESHWORK_INLINE i32 columnOf(i32 j) {
    return warpColumn() + j / 2 * 8 + j % 2 +
           static_cast<i32>(threadInBlock() % 4 * 2);
  }

  static MESHWORK_INLINE void accumulate(float (&sums)[rows][columns],
                                         u32 stage) {
    u32 lane = fresh(threadInBlock()) % 32;
    u32 own = Left::firstSquare(stage, lane, warpRow(), true),
        other =
            Right::firstSquare(stage + operandBytes, lane, warpColumn(), false);
#pragma unroll
    for (i32 k = 0; k < depth / 16; ++k) {
      u32 b[halves][4];
#pragma unroll
      for (i32 n = 0; n < halves; ++n)
        Right::loadSquare(b[n], other, n, k);
#pragma unroll
      for (i32 m = 0; m < squares; ++m) {
        u32 a[4];
        Left::loadSquare(a, own, m, k);
#pragma unroll
        for (i32 n = 0; n < 2 * halves; ++n)
          multiplyAdd(&sums[2 * m][2 * n], &sums[2 * m + 1][2 * n], a,
                      b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
  }
};

} // namespace meshwork::grouped
