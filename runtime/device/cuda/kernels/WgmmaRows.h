// What the kernels of attention do with registers of products: numbers on the
// way to memory, and the functions that they share.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaRing.h"

namespace meshwork::runtime::cuda {

inline constexpr float infinity = __builtin_inff(), log2e = 1.4426950408889634f,
                       ln2 = 0.6931471805599453f;

template <int R> MESHWORK_INLINE void setAll(float (&values)[R], float value) {
#pragma unroll
  for (int i = 0; i < R; ++i)
    values[i] = value;
}

MESHWORK_INLINE float exponential2(float x) {
  return __nvvm_ex2_approx_ftz_f(x);
}
MESHWORK_INLINE float shuffled(float value, int step) {
  return __nvvm_shfl_sync_bfly_f32(~0u, value, step, 31);
}

template <int R>
MESHWORK_INLINE void
storeWideRows(const float (&sums)[R], const float (&factors)[2],
              const WgmmaWide &to, int row, int head, int sample) {
  struct alignas(8) Pair {
    float values[2];
  };
  Lane lane;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    int at = row + lane.row + 8 * r;
    if (at >= to.rows)
      continue;
    float *place = reinterpret_cast<float *>(to.address) +
                   sample * to.strides[0] + head * to.strides[1] +
                   at * to.strides[2] + lane.column;
#pragma unroll
    for (int j = 0; j < R / 4; ++j)
      if (8 * j + lane.column < to.headDim)
        *reinterpret_cast<Pair *>(place + 8 * j) = {
            {sums[4 * j + 2 * r] * factors[r],
             sums[4 * j + 2 * r + 1] * factors[r]}};
  }
}

/// What a warpgroup has computed, on its way to memory: 64 rows of a head.
template <int D, int R>
MESHWORK_INLINE void storeRows(U32 tile, const float (&sums)[R],
                               const float (&factors)[2], const TensorMap &to,
                               const WgmmaWide &wide, int row, int head,
                               int sample) {
  static_assert(R == D / 2);
  if (wide.address)
    return storeWideRows(sums, factors, wide, row, head, sample);
  writeTile(tile, sums, factors);
  publishShared();
  meetThreads(1 + warpgroup(), warpgroupThreads);
  if (!isFirstOfWarpgroup())
    return;
#pragma unroll
  for (int column = 0; column < D; column += boxColumns)
    storeBox(to, {column, row, head, sample},
             tile + column / boxColumns * columnBytes(warpgroupRows));
  commitStores();
}
/// Before its tiles are written again, or given up.
MESHWORK_INLINE void finishRows() {
  if (isFirstOfWarpgroup())
    finishStores();
  meetThreads(1 + warpgroup(), warpgroupThreads);
}

} // namespace meshwork::runtime::cuda
