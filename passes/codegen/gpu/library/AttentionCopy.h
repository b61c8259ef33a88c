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
