// Rows of a softmax, a block each: loops, shared memory, shuffles, exp2.
#include "Kernel.h"

DEVICE float maxOfWarp(float x) {
  for (int offset = 16; offset > 0; offset /= 2)
    x = __builtin_fmaxf(
        x, __builtin_bit_cast(
               float, __nvvm_shfl_sync_bfly_i32(~0u, __builtin_bit_cast(int, x),
                                                offset, 31)));
  return x;
}
DEVICE float sumOfWarp(float x) {
  for (int offset = 16; offset > 0; offset /= 2)
    x += __builtin_bit_cast(
        float,
        __nvvm_shfl_sync_bfly_i32(~0u, __builtin_bit_cast(int, x), offset, 31));
  return x;
}

KERNEL softmax(float *out, const float *in, int columns) {
  SHARED float partial[32];
  const float *row = in + blockX() * columns;
  unsigned warp = threadX() / 32, lane = threadX() % 32, warps = threads() / 32;
  float largest = -__builtin_inff();
  for (int i = threadX(); i < columns; i += threads())
    largest = __builtin_fmaxf(largest, row[i]);
  largest = maxOfWarp(largest);
  if (lane == 0)
    partial[warp] = largest;
  __syncthreads();
  largest = maxOfWarp(lane < warps ? partial[lane] : -__builtin_inff());
  __syncthreads();
  float sum = 0;
  for (int i = threadX(); i < columns; i += threads())
    sum += __nvvm_ex2_approx_f((row[i] - largest) * 1.44269504f);
  sum = sumOfWarp(sum);
  if (lane == 0)
    partial[warp] = sum;
  __syncthreads();
  sum = sumOfWarp(lane < warps ? partial[lane] : 0);
  for (int i = threadX(); i < columns; i += threads())
    out[blockX() * columns + i] =
        __nvvm_ex2_approx_f((row[i] - largest) * 1.44269504f) / sum;
}
