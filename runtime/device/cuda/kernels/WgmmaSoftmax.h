// Softmax over tiles of keys.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaRows.h"

namespace meshwork::runtime::cuda {

/// With a running maximum and sum of a thread's two
/// rows. Scores are products of q and k; `factor` turns them to powers of two.
class RunningSoftmax {
public:
  MESHWORK_INLINE explicit RunningSoftmax(float factor) : factor(factor) {}

  /// Scores to powers, and what came before is to be multiplied by `factors`.
  template <int R>
  MESHWORK_INLINE void add(float (&scores)[R], float (&factors)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float before = maximum[r], largest = before;
#pragma unroll
      for (int j = 0; j < R / 4; ++j)
        largest = __builtin_fmaxf(
            largest,
            __builtin_fmaxf(scores[4 * j + 2 * r], scores[4 * j + 2 * r + 1]));
      largest = __builtin_fmaxf(largest, shuffled(largest, 1));
      maximum[r] = __builtin_fmaxf(largest, shuffled(largest, 2));
      float shift = shiftOf(r) * factor;
      factors[r] = exponential2(__builtin_fmaf(before, factor, -shift));
      float added = 0;
#pragma unroll
      for (int j = 0; j < R / 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &score = scores[4 * j + 2 * r + e];
          score = exponential2(__builtin_fmaf(score, factor, -shift));
          added += score;
        }
      sum[r] = __builtin_fmaf(sum[r], factors[r], added);
    }
  }

  /// Over all columns, after the last tile.
  MESHWORK_INLINE void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += shuffled(sum[r], 1);
      sum[r] += shuffled(sum[r], 2);
    }
  }
  /// Depends on all powers so far.
  MESHWORK_INLINE float anySum() const { return sum[0] + sum[1]; }
  MESHWORK_INLINE float inverse(int r) const {
    return sum[r] > 0 ? 1 / sum[r] : 0.0f;
  }
  MESHWORK_INLINE float logOfSum(int r) const {
    return (shiftOf(r) * factor + __nvvm_lg2_approx_ftz_f(sum[r])) * ln2;
  }

private:
  /// A row that has seen no key yet: any finite shift keeps its powers zero.
  MESHWORK_INLINE float shiftOf(int r) const {
    return maximum[r] == -infinity ? 0.0f : maximum[r];
  }

  float factor;
  float maximum[2] = {-infinity, -infinity}, sum[2] = {0, 0};
};

} // namespace meshwork::runtime::cuda
