// Softmax over blocks of keys, with a running maximum and sum of each row; and
// how a thread walks the scores it has.
#pragma once

#include "passes/codegen/gpu/library/Attention.h"

namespace meshwork::attention {

MESHWORK_INLINE float exponential2(float x) {
  return __nvvm_ex2_approx_ftz_f(x);
}
inline constexpr float infinity = __builtin_inff();

/// Scores, products of q and k, to powers of two: factor times (score or its
/// negative). With a negative scale it is the negative, so that maxima work.
MESHWORK_INLINE float factorOf(const Shape &shape) {
  return (shape.scale < 0 ? -shape.scale : shape.scale) * log2e;
}
template <int R, int C>
MESHWORK_INLINE void applySign(float (&scores)[R][C], const Shape &shape) {
  if (shape.scale >= 0)
    return;
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      scores[i][j] = -scores[i][j];
}

template <int R, int C>
MESHWORK_INLINE void setAll(float (&values)[R][C], float value) {
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      values[i][j] = value;
}

/// Where this thread's first score is in the whole matrix; the others are at
/// constant distances. Rows are queries and columns keys, or the other way
/// round.
template <typename Engine, bool rowsAreKeys> struct Place {
  int query, key;

  MESHWORK_INLINE explicit Place(const Block &block) {
    u32 thread = fresh(threadInBlock()), row = Engine::firstRow(thread),
        column = Engine::firstColumn(thread);
    query = block.query + (rowsAreKeys ? column : row);
    key = block.key + (rowsAreKeys ? row : column);
  }
  MESHWORK_INLINE int queryAt(int i, int j) const {
    return query + (rowsAreKeys ? Engine::columnStep(j) : Engine::rowStep(i));
  }
  MESHWORK_INLINE int keyAt(int i, int j) const {
    return key + (rowsAreKeys ? Engine::rowStep(i) : Engine::columnStep(j));
  }
};

/// Puts `value` where a query does not see a key.
template <typename Engine, bool rowsAreKeys, int R, int C>
MESHWORK_INLINE void fillUnseen(float (&scores)[R][C], const Mask &mask,
                                const Block &block, float value) {
  Place<Engine, rowsAreKeys> place(block);
  int queries[rowsAreKeys ? C : R], documents[rowsAreKeys ? C : R];
#pragma unroll
  for (int n = 0; n < (rowsAreKeys ? C : R); ++n) {
    queries[n] = mask.queryOf(place.queryAt(n, n));
    documents[n] = mask.documentOf(place.queryAt(n, n));
  }
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      if (!mask.sees(mask.shape.hasPositions ? queries[rowsAreKeys ? j : i]
                                             : place.queryAt(i, j),
                     documents[rowsAreKeys ? j : i], place.keyAt(i, j)))
        scores[i][j] = value;
}

/// Which of a thread's elements dropout keeps: bit C * i + j, in words.
template <typename Engine, bool rowsAreKeys, int R, int C> struct Kept {
  u32 words[(R * C + 31) / 32];

  MESHWORK_INLINE Kept(const Shape &shape, const Dropout &dropout,
                       const Block &block) {
    Place<Engine, rowsAreKeys> place(block);
#pragma unroll
    for (int first = 0; first < R * C; first += 32) {
      u32 bits = 0;
      // Not unrolled: registers are full of sums, and all at once it is long.
#pragma unroll 1
      for (int bit = 0; bit < 32 && bit < R * C; bit += atOnce)
#pragma unroll
        for (int e = bit; e < bit + atOnce; ++e) {
          int i = (first + e) / C, j = (first + e) % C;
          bits |=
              u32{dropout.keeps(shape, place.queryAt(i, j), place.keyAt(i, j))}
              << e;
        }
      words[first / 32] = bits;
    }
  }

  MESHWORK_INLINE bool keeps(int i, int j) const {
    return words[(C * i + j) / 32] >> (C * i + j) % 32 & 1;
  }

private:
  static constexpr int atOnce = R * C < 4 ? R * C : 4;
};

/// What is kept times `factor`, else zero; rows are queries.
template <typename Engine, int R, int C>
MESHWORK_INLINE void drop(float (&values)[R][C], const Shape &shape,
                          const Dropout &dropout, const Block &block,
                          float factor) {
  if (!shape.hasDropout)
    return;
  Kept<Engine, false, R, C> kept(shape, dropout, block);
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      values[i][j] = kept.keeps(i, j) ? values[i][j] * factor : 0.0f;
}

/// Over the lanes that share a row. A maximum ignores NaN, as max.f32 does.
template <typename Engine> MESHWORK_INLINE float rowMaximum(float value) {
#pragma unroll
  for (int step = 1; step < Engine::lanesOfRow; step *= 2)
    value =
        __builtin_fmaxf(value, __nvvm_shfl_sync_bfly_f32(~0u, value, step, 31));
  return value;
}
template <typename Engine> MESHWORK_INLINE float rowSum(float value) {
#pragma unroll
  for (int step = 1; step < Engine::lanesOfRow; step *= 2)
    value += __nvvm_shfl_sync_bfly_f32(~0u, value, step, 31);
  return value;
}

template <typename Engine> struct Softmax {
  static constexpr int R = Engine::rows;
  float maximum[R]; // of scores
  float sum[R];     // of this thread's columns only

  MESHWORK_INLINE Softmax() {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      maximum[i] = -infinity;
      sum[i] = 0;
    }
  }

  /// Turns scores into exp(scale * (score - maximum)) and moves what was summed
  /// before, sums of values included, to the new maxima.
  template <int C, int N>
  MESHWORK_INLINE void add(float (&scores)[R][C], float (&values)[R][N],
                           float factor) {
    float before[R];
    bool grew = false;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      before[i] = maximum[i];
      float largest = scores[i][0];
#pragma unroll
      for (int j = 1; j < C; ++j)
        largest = __builtin_fmaxf(largest, scores[i][j]);
      maximum[i] = __builtin_fmaxf(before[i], rowMaximum<Engine>(largest));
      grew |= maximum[i] > before[i];
    }
    // Mostly no row of the warp has a new maximum; then all factors would be
    // one.
    if (ballot(grew) != 0)
      rescale(before, values, factor);
#pragma unroll
    for (int i = 0; i < R; ++i) {
      float shift = -shiftOf(i) * factor;
#pragma unroll
      for (int j = 0; j < C; ++j) {
        scores[i][j] =
            exponential2(__builtin_fmaf(scores[i][j], factor, shift));
        sum[i] += scores[i][j];
      }
    }
  }

private:
  /// A row that has seen no key yet: any finite shift keeps its powers zero.
  MESHWORK_INLINE float shiftOf(int i) const {
    return maximum[i] == -infinity ? 0.0f : maximum[i];
  }

  template <int N>
  MESHWORK_INLINE void rescale(const float (&before)[R], float (&values)[R][N],
                               float factor) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      float by = exponential2((before[i] - shiftOf(i)) * factor);
      sum[i] *= by;
#pragma unroll
      for (int n = 0; n < N; ++n)
        values[i][n] *= by;
    }
  }
};

} // namespace meshwork::attention
