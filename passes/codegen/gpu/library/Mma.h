// What tensor cores are fed with from sm_80 on: 8 x 8 matrices of bf16 out of
// shared memory, and products of 16 x 16 by 16 x 8 with f32 sums.
#pragma once

#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

/// Four 8 x 8 matrices of bf16; lane l names row l % 8 of matrix l / 8.
MESHWORK_INLINE void loadMatrices(u32 (&to)[4], u32 address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(address)
      : "memory");
}
MESHWORK_INLINE void loadTransposed(u32 (&to)[4], u32 address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(address)
      : "memory");
}
/// Two rows of sums (a thread's) += left times right.
MESHWORK_INLINE void multiplyAdd(float *upper, float *lower,
                                 const u32 (&left)[4], u32 right0, u32 right1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0),
        "r"(right1));
}
/// Both rounded to nearest even, `low` in the lower half.
MESHWORK_INLINE u32 pack(float low, float high) {
  u32 result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

} // namespace meshwork
