// Softmax over blocks of keys, with a running maximum and sum of each row.
#pragma once

#include "passes/codegen/gpu/library/Attention.h"

namespace meshwork::attention {

MESHWORK_INLINE float exponential2(float x) {
  return __nvvm_ex2_approx_ftz_f(x);
}
inline constexpr float infinity = __builtin_inff();

/// Up to |x| = 0.625 it is x + x^3 p(x^2), p of degree 4 fitted to the least
/// maximum of the relative error, 9e-9. Above, 1 - 2 / (e^2|x| + 1) loses no
/// digits.
MESHWORK_INLINE float hyperbolicTangent(float x) {
  float size = __builtin_fabsf(x), square = x * x;
  float large = 1.0f - 2.0f / (exponential2(size * (2 * log2e)) + 1.0f);
  float p = __builtin_fmaf(-0x1.75e1c2p-8f, square, 0x1.522698p-6f);
  p = __builtin_fmaf(p, square, -0x1.b83c5ap-5f);
  p = __builtin_fmaf(p, square, 0x1.110726p-3f);
  p = __builtin_fmaf(p, square, -0x1.555532p-2f);
  return size <= 0.625f ? __builtin_fmaf(p * square, x, x)
                        : __builtin_copysignf(large, x);
}

/// Scores to powers of two: factor times score. Scores are products of q and k,
/// or their negatives where the scale is negative, so that maxima work; or with
/// a cap what that makes of scaled ones.
MESHWORK_INLINE float factorOf(const Shape &shape) {
  if (shape.cap > 0)
    return log2e;
  return (shape.scale < 0 ? -shape.scale : shape.scale) * log2e;
}
template <int R, int C>
MESHWORK_INLINE void toScores(float (&products)[R][C], const Shape &shape) {
  if (shape.cap > 0) {
    float factor = shape.scale / shape.cap;
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j)
        products[i][j] = shape.cap * hyperbolicTangent(products[i][j] * factor);
    return;
  }
  if (shape.scale >= 0)
    return;
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      products[i][j] = -products[i][j];
}
/// The derivative of such a score by the scaled product.
MESHWORK_INLINE float slopeOf(float score, const Shape &shape) {
  float share = shape.cap > 0 ? score / shape.cap : 0.0f;
  return __builtin_fmaf(-share, share, 1.0f);
}

template <int R, int C>
MESHWORK_INLINE void setAll(float (&values)[R][C], float value) {
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      values[i][j] = value;
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
