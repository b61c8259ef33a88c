// bf16 on tensor cores: mma.m16n8k16 with f32 sums. A warp has 16 * M rows of
// a tile and all of its columns.
//
// A thread's values of a 16 x 8 result are, as PTX ISA 9.7.14 has it, two
// neighbours in row lane / 4 and two in row lane / 4 + 8: here value [2m +
// r][2n + c]. Packed to bf16 they are the left operand of the next product as
// they lie.
#pragma once

#include "passes/codegen/gpu/library/AttentionCopy.h"
#include "passes/codegen/gpu/library/Mma.h"

namespace meshwork::attention {

template <int D, int M> struct MmaEngine {
  using Element = Bf16;
  static constexpr bool bf16 = true;
  static constexpr int d = D, rowsOfWarp = 16 * M;
  static constexpr int rows = 2 * M;   // of a thread
  static constexpr int lanesOfRow = 4; // that share a row
  static constexpr int columns(int keys) { return keys / 4; } // of a thread
  static constexpr int tileBytes(int rows) { return rows * D * 2; }

  // Rows of a tile lie without gaps. Eight rows of one column of chunks (16
  // bytes), what ldmatrix reads at once, must lie in different banks: chunks
  // are exchanged within groups, by the row.
  static constexpr int chunks = D / 8;
  static constexpr int group = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2;
  static MESHWORK_INLINE u32 exchange(u32 row) {
    return row / (8 / group) % group;
  }
  static MESHWORK_INLINE u32 chunkAt(u32 tile, u32 row, u32 chunk) {
    return tile + (row * chunks + (chunk ^ exchange(row))) * 16;
  }

  static MESHWORK_INLINE u32 warpRow(u32 thread) {
    return thread / 32 * rowsOfWarp;
  }
  // A thread's values: from (firstRow, firstColumn) on.
  static MESHWORK_INLINE u32 firstRow(u32 thread) {
    return warpRow(thread) + thread % 32 / 4;
  }
  static MESHWORK_INLINE u32 firstColumn(u32 thread) { return thread % 4 * 2; }
  static MESHWORK_INLINE int rowStep(int i) { return i / 2 * 16 + i % 2 * 8; }
  static MESHWORK_INLINE int columnStep(int j) { return j / 2 * 8 + j % 2; }

  /// What this lane names of a tile's first 16 x 16 square: the matrices are
  /// upper left, lower left, upper right, lower right.
  static MESHWORK_INLINE u32 firstSquare(u32 lane) {
    return named(lane % 16, lane / 16);
  }
  /// Or upper left, upper right, lower left, lower right: for rows that are
  /// columns of the right operand, whose registers must be neighbours.
  static MESHWORK_INLINE u32 firstColumnSquare(u32 lane) {
    return named(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  /// Of the square at row 16 * r and column 16 * c, given the first one's: the
  /// exchange concerns the low bits of the chunk only.
  static MESHWORK_INLINE u32 squareAt(u32 first, u32 tile, int r, int c) {
    int low = 2 * c % group;
    return (first ^ low * 16) + tile + r * 16 * D * 2 + (2 * c - low) * 16;
  }

  /// scores += rows of `left` (the warp's) times rows of `right`.
  template <int R, int C>
  static MESHWORK_INLINE void multiply(float (&scores)[R][C], u32 left,
                                       u32 right) {
    u32 thread = fresh(threadInBlock()), lane = thread % 32;
    u32 own = firstSquare(lane) + warpRow(thread) * D * 2,
        other = firstColumnSquare(lane);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      u32 a[M][4];
#pragma unroll
      for (int m = 0; m < M; ++m)
        loadMatrices(a[m], squareAt(own, left, m, k));
#pragma unroll
      for (int n = 0; n < C / 4; ++n) {
        u32 b[4];
        loadMatrices(b, squareAt(other, right, n, k));
#pragma unroll
        for (int m = 0; m < M; ++m) {
          multiplyAdd(&scores[2 * m][4 * n], &scores[2 * m + 1][4 * n], a[m],
                      b[0], b[1]);
          multiplyAdd(&scores[2 * m][4 * n + 2], &scores[2 * m + 1][4 * n + 2],
                      a[m], b[2], b[3]);
        }
      }
    }
  }

  /// sums += left (rounded to bf16) times the rows of `right`, from column
  /// 16 * square on.
  template <int R, int C, int N>
  static MESHWORK_INLINE void accumulate(float (&sums)[R][N],
                                         const float (&left)[R][C], u32 right,
                                         u32 /*scratch*/, int square = 0) {
    u32 first = firstSquare(fresh(threadInBlock()) % 32), a[M][C / 4][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < C; ++i)
        a[m][i / 4][i / 2 % 2 * 2 + i % 2] = pack(
            left[2 * m + i % 2][i / 2 * 2], left[2 * m + i % 2][i / 2 * 2 + 1]);
#pragma unroll
    for (int k = 0; k < C / 4; ++k) {
#pragma unroll
      for (int n = 0; n < N / 4; ++n) {
        u32 b[4];
        loadTransposed(b, squareAt(first, right, k, square + n));
#pragma unroll
        for (int m = 0; m < M; ++m) {
          multiplyAdd(&sums[2 * m][4 * n], &sums[2 * m + 1][4 * n], a[m][k],
                      b[0], b[1]);
          multiplyAdd(&sums[2 * m][4 * n + 2], &sums[2 * m + 1][4 * n + 2],
                      a[m][k], b[2], b[3]);
        }
      }
    }
  }

  /// Writes the warp's rows, each times its factor, through its rows of `tile`,
  /// which no other warp reads any more.
  template <int R, int N>
  static MESHWORK_INLINE void store(const HeadRows<Bf16> &to,
                                    const float (&sums)[R][N],
                                    const float (&factors)[R], u32 tile,
                                    const Shape &shape, int firstColumn = 0) {
    __nvvm_bar_warp_sync(~0u);
    u32 thread = fresh(threadInBlock());
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < N; j += 2)
        *sharedPointer<u32>(
            chunkAt(tile, firstRow(thread) + rowStep(i), j / 2) +
            thread % 4 * 4) =
            pack(sums[i][j] * factors[i], sums[i][j + 1] * factors[i]);
    __nvvm_bar_warp_sync(~0u);
    constexpr int width = N / 2; // chunks
#pragma unroll
    for (int start = 0; start < rowsOfWarp * width; start += 32) {
      u32 index = start + thread % 32, own = warpRow(thread) + index / width,
          chunk = index % width;
      if (static_cast<int>(own) < to.count)
        storeChunk(to.data + own * to.stride + firstColumn,
                   chunkAt(tile, own, chunk), chunk * 8, shape, firstColumn);
    }
  }

  /// In f32: the four lanes of a row write a sector of it at once.
  template <int R, int N>
  static MESHWORK_INLINE void store(const HeadRows<float> &to,
                                    const float (&sums)[R][N],
                                    const float (&factors)[R], u32 /*tile*/,
                                    const Shape &shape, int firstColumn = 0) {
    u32 thread = fresh(threadInBlock());
    int first = static_cast<int>(firstRow(thread));
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < N; j += 2)
        if (first + rowStep(i) < to.count)
          storePair(to.data + (first + rowStep(i)) * to.stride,
                    firstColumn + columnStep(j) +
                        static_cast<int>(MmaEngine::firstColumn(thread)),
                    {sums[i][j] * factors[i], sums[i][j + 1] * factors[i]},
                    shape);
  }

private:
  static MESHWORK_INLINE void
  storePair(float *row, int column, Vector<float, 2> pair, const Shape &shape) {
    int left = static_cast<int>(shape.headDim) - column;
    if (shape.aligned) {
      if (left > 0)
        meshwork::store<2>(row + column, pair);
      return;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (i < left)
        row[column + i] = pair[i];
  }

  static MESHWORK_INLINE u32 named(u32 row, u32 chunk) {
    return row * D * 2 + (chunk ^ exchange(row)) * 16;
  }

  static MESHWORK_INLINE void storeChunk(Bf16 *row, u32 from, int column,
                                         const Shape &shape, int firstColumn) {
    int left = static_cast<int>(shape.headDim) - firstColumn - column;
    if (shape.aligned) {
      if (left > 0)
        *reinterpret_cast<Vector<u32, 4> *>(row + column) =
            *sharedPointer<Vector<u32, 4>>(from);
      return;
    }
    const Bf16 *source = sharedPointer<Bf16>(from);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < left)
        row[column + i] = source[i];
  }
};

} // namespace meshwork::attention
