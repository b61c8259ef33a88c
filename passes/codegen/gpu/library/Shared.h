// Shared memory, by addresses of its own, and copies into it that nobody waits
// for.
#pragma once

#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

/// Hides where a value comes from. LLVM would otherwise keep the address of
/// every access in a register of its own through the loop over blocks; so it
/// forms them where they are used.
MESHWORK_INLINE u32 fresh(u32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

#define MESHWORK_SHARED __attribute__((address_space(3)))
/// Shared memory by its own addresses, of 32 bits.
MESHWORK_INLINE u32 sharedAddress() {
  return static_cast<u32>(
      reinterpret_cast<u64>((MESHWORK_SHARED u8 *)meshwork_shared));
}
template <typename T> MESHWORK_INLINE T *sharedPointer(u32 address) {
  return (T *)reinterpret_cast<MESHWORK_SHARED T *>(u64{address});
}

/// Starts to copy 16 bytes; or writes zeros, and does not read.
MESHWORK_INLINE void startCopy(u32 to, const void *from, bool exists) {
  u64 address = reinterpret_cast<u64>(
      (__attribute__((address_space(1))) const void *)from);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(address), "r"(exists ? 16 : 0)
               : "memory");
}
/// Waits for this thread's copies, then for the block: all see all of them.
MESHWORK_INLINE void finishCopies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  meetBlock();
}
/// Ends a group of this thread's copies.
MESHWORK_INLINE void endGroup() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for all groups but the last `pending`, then for the block.
template <int pending> MESHWORK_INLINE void finishGroups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
  meetBlock();
}

/// 16 bytes of elements of which `count` exist, one by one.
template <typename T>
MESHWORK_INLINE void copyElements(u32 to, const T *from, int count) {
  constexpr int perChunk = 16 / sizeof(T);
  T *target = sharedPointer<T>(to);
#pragma unroll
  for (int i = 0; i < perChunk; ++i)
    target[i] = i < count ? from[i] : T{};
}

} // namespace meshwork
