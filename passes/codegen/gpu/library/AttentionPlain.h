// f32, by plain multiply-adds: 16 x 16 threads, each with every sixteenth row
// and column of a square of scores. For accuracy, not for speed.
#pragma once

#include "passes/codegen/gpu/library/AttentionCopy.h"

namespace meshwork::attention {

template <int D> struct PlainEngine {
  using Element = float;
  static constexpr bool bf16 = false;
  static constexpr int d = D, side = plainSide(D);
  static constexpr int rows = side / 16;
  static constexpr int lanesOfRow = 16;
  static constexpr int columns(int keys) { return keys / 16; }
  // Four elements more than needed: eight rows then begin in different banks.
  static constexpr int pitch = D + 4, squarePitch = side + 4;
  static constexpr int tileBytes(int rows) { return rows * pitch * 4; }

  static MESHWORK_INLINE u32 chunkAt(u32 tile, u32 row, u32 chunk) {
    return tile + row * pitch * 4 + chunk * 16;
  }
  static MESHWORK_INLINE u32 firstRow(u32 thread) { return thread / 16; }
  static MESHWORK_INLINE u32 firstColumn(u32 thread) { return thread % 16; }
  static MESHWORK_INLINE int rowStep(int i) { return 16 * i; }
  static MESHWORK_INLINE int columnStep(int j) { return 16 * j; }

  /// scores += rows of `left` times rows of `right`.
  template <int R, int C>
  static MESHWORK_INLINE void multiply(float (&scores)[R][C], u32 left,
                                       u32 right) {
    const float *a =
        sharedPointer<float>(left) + firstRow(threadInBlock()) * pitch;
    const float *b =
        sharedPointer<float>(right) + firstColumn(threadInBlock()) * pitch;
    for (int k = 0; k < D; k += 4) {
      Vector<float, 4> own[R];
#pragma unroll
      for (int i = 0; i < R; ++i)
        own[i] = load<4>(a + rowStep(i) * pitch + k);
#pragma unroll
      for (int j = 0; j < C; ++j) {
        Vector<float, 4> other = load<4>(b + columnStep(j) * pitch + k);
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            scores[i][j] = __builtin_fmaf(own[i][e], other[e], scores[i][j]);
      }
    }
  }

  /// sums += left times the rows of `right`; `left` goes through `scratch`.
  template <int R, int C, int N>
  static MESHWORK_INLINE void accumulate(float (&sums)[R][N],
                                         const float (&left)[R][C], u32 right,
                                         u32 scratch, int = 0) {
    u32 column = firstColumn(threadInBlock());
    float *a =
        sharedPointer<float>(scratch) + firstRow(threadInBlock()) * squarePitch;
    const float *b = sharedPointer<float>(right) + column;
    // A row's threads are of one warp: no other warp reads what is written.
    __nvvm_bar_warp_sync(~0u);
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        a[rowStep(i) * squarePitch + column + columnStep(j)] = left[i][j];
    __nvvm_bar_warp_sync(~0u);
    for (int k = 0; k < side; ++k)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < R; ++i)
          sums[i][n] = __builtin_fmaf(a[rowStep(i) * squarePitch + k],
                                      b[k * pitch + columnStep(n)], sums[i][n]);
  }

  template <int R, int N>
  static MESHWORK_INLINE void
  store(const HeadRows<float> &to, const float (&sums)[R][N],
        const float (&factors)[R], u32 /*tile*/, const Shape &shape, int = 0) {
    int first = firstRow(threadInBlock()),
        firstOfRow = firstColumn(threadInBlock());
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int row = first + rowStep(i), column = firstOfRow + columnStep(n);
        if (row < to.count && column < shape.headDim)
          to.data[row * to.stride + column] = sums[i][n] * factors[i];
      }
  }
};

} // namespace meshwork::attention
