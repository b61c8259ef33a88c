// What the 32 lanes of a warp tell each other; all of them must be there.
#pragma once

#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

constexpr i32 lanes = 32;

__device__ inline i32 laneOfWarp() {
  return static_cast<i32>(threadInBlock() % lanes);
}
/// Of the lane whose number differs in the bits of `step`.
__device__ inline u32 exchange(u32 value, i32 step) {
  return static_cast<u32>(
      __nvvm_shfl_sync_bfly_i32(~0u, static_cast<i32>(value), step, 31));
}
__device__ inline i32 fromLane(i32 value, i32 lane) {
  return __nvvm_shfl_sync_idx_i32(~0u, value, lane, 31);
}
/// Of the lane `step` before; `first` where there is none.
__device__ inline i32 fromBefore(i32 value, i32 step, i32 first) {
  i32 before = __nvvm_shfl_sync_up_i32(~0u, value, step, 0);
  return laneOfWarp() < step ? first : before;
}

__device__ inline i32 smallerOf(i32 a, i32 b) { return a < b ? a : b; }
__device__ inline i32 largerOf(i32 a, i32 b) { return a > b ? a : b; }

/// The sum over this lane and those before.
__device__ inline i32 sumUpTo(i32 value) {
#pragma unroll
  for (i32 step = 1; step < lanes; step *= 2)
    value += fromBefore(value, step, 0);
  return value;
}
/// The largest of this lane and those before.
__device__ inline i32 largestUpTo(i32 value) {
#pragma unroll
  for (i32 step = 1; step < lanes; step *= 2)
    value = largerOf(value, fromBefore(value, step, value));
  return value;
}
/// The lowest lane for which `is` holds, `lanes` if none.
__device__ inline i32 firstLane(bool is) {
  u32 all = ballot(is);
  return all ? __builtin_ctz(all) : lanes;
}
/// How many lanes before this one are in `all`.
__device__ inline i32 countBefore(u32 all) {
  return static_cast<i32>(countBits(all & ((1u << laneOfWarp()) - 1)));
}

} // namespace meshwork
