// Rows of heads from global to shared memory, 16 bytes at a time and without
// waiting where they are aligned; zeros where there is no row or no column.
#pragma once

#include "passes/codegen/gpu/library/Attention.h"

namespace meshwork::attention {

/// Rows [first, ...) of one sample and head.
template <typename T> struct HeadRows {
  T *data;
  i64 stride; // elements
  int count;  // rows that exist

  MESHWORK_INLINE HeadRows(T *base, const Strides &strides, i64 rows,
                           int sample, int first, int head)
      : data(rowAt(base, strides, sample, first, head)),
        stride(strides.position), count(static_cast<int>(rows) - first) {}
};

/// Where a kernel's results go.
struct Destination {
  void *data;
  const Strides &strides;
  i64 rows; // that exist
  int sample, first, head;

  template <typename T> MESHWORK_INLINE HeadRows<T> as() const {
    return {static_cast<T *>(data), strides, rows, sample, first, head};
  }
};
/// Each row of sums times its factor; see the engines.
template <typename Engine, int R, int N>
MESHWORK_INLINE void storeRows(const Destination &to, const float (&sums)[R][N],
                               const float (&factors)[R], u32 tile,
                               const Shape &shape, int firstColumn = 0) {
  if (shape.wideResults)
    Engine::store(to.as<float>(), sums, factors, tile, shape, firstColumn);
  else
    Engine::store(to.as<typename Engine::Element>(), sums, factors, tile, shape,
                  firstColumn);
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

/// 16 bytes of elements of which `count` exist, one by one.
template <typename T>
MESHWORK_INLINE void copyElements(u32 to, const T *from, int count) {
  constexpr int perChunk = 16 / sizeof(T);
  T *target = sharedPointer<T>(to);
#pragma unroll
  for (int i = 0; i < perChunk; ++i)
    target[i] = i < count ? from[i] : T{};
}

/// `rows` rows into a tile of Engine's layout, by all threads of the block.
template <typename Engine, int rows, int threads>
MESHWORK_INLINE void
copyRows(u32 tile, const HeadRows<const typename Engine::Element> &from,
         const Shape &shape) {
  constexpr int perChunk = 16 / sizeof(typename Engine::Element),
                chunks = Engine::d / perChunk;
  constexpr int rowsAtOnce =
      threads / chunks; // Threads that are left over rest.
  u32 thread = fresh(threadInBlock()), chunk = thread % chunks,
      firstRow = thread / chunks;
  int left =
      static_cast<int>(shape.headDim) - static_cast<int>(chunk) * perChunk;
  int rowsLeft = left > 0 ? from.count - static_cast<int>(firstRow) : 0;
  const auto *source = from.data + firstRow * from.stride + chunk * perChunk;
#pragma unroll
  for (int row = 0; row < rows; row += rowsAtOnce) {
    if ((threads % chunks != 0 && firstRow >= rowsAtOnce) ||
        (row + rowsAtOnce > rows && firstRow + row >= rows))
      continue;
    u32 to = Engine::chunkAt(tile, firstRow + row, chunk);
    if (shape.aligned)
      startCopy(to, source + row * from.stride, row < rowsLeft);
    else
      copyElements(to, source + row * from.stride, row < rowsLeft ? left : 0);
  }
}

} // namespace meshwork::attention
