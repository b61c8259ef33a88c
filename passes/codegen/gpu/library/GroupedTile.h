// The product of two tiles, of as many rows and columns as a block computes.
// What multiplies is an engine: GroupedMma.h, bf16; GroupedPlain.h, f32.
#pragma once

#include "passes/codegen/gpu/library/GroupedGeometry.h"
#include "passes/codegen/gpu/library/Shared.h"

namespace meshwork::grouped {

/// An operand from the tile's first row (of the left one; a column of the right
/// one) on. Its elements follow each other along the sum, or across it: then a
/// line is one place of the sum.
template <typename T> struct Operand {
  const T *data;
  i64 stride;        // from line to line, in elements
  i32 across, depth; // that exist
  bool aligned;      // lines, and what exists of them, to 16 bytes
};

/// Where a tile of the result goes.
struct Destination {
  void *data; // of its first element
  i64 stride; // of rows, in elements
  i32 rows, columns;
  bool paired, adds; // neighbours of a thread at once; to what is there
};

/// sums = left times right. Loads are `stages` - 1 tiles ahead.
template <typename Engine>
MESHWORK_INLINE void multiply(float (&sums)[Engine::rows][Engine::columns],
                              const Operand<typename Engine::Element> &left,
                              const Operand<typename Engine::Element> &right) {
  constexpr i32 ahead = Engine::stages - 1;
  i32 steps = (left.depth + Engine::depth - 1) / Engine::depth;
  u32 base = sharedAddress();
  auto load = [&](i32 step) {
    u32 stage = base + step % Engine::stages * Engine::stageBytes;
    if (step < steps) {
      Engine::Left::load(stage, left, step * Engine::depth);
      Engine::Right::load(stage + Engine::operandBytes, right,
                          step * Engine::depth);
    }
    endGroup();
  };
#pragma unroll
  for (i32 step = 0; step < ahead; ++step)
    load(step);
#pragma unroll 1
  for (i32 step = 0; step < steps; ++step) {
    finishGroups<ahead - 1>();
    load(step + ahead);
    Engine::accumulate(sums, base + step % Engine::stages * Engine::stageBytes);
  }
}

/// The values from `from` on, of which N follow each other in memory.
template <i32 N, typename T>
MESHWORK_INLINE void storeSome(T *to, const float *from, bool adds) {
  Vector<float, N> values = adds ? load<N>(to) : Vector<float, N>(0.0f);
#pragma unroll
  for (i32 n = 0; n < N; ++n)
    values[n] += from[n];
  store<N>(to, values);
}

/// Writes what of the tile exists.
template <typename Engine, typename T>
MESHWORK_INLINE void
storeTile(const Destination &to,
          const float (&sums)[Engine::rows][Engine::columns], T * /*type*/) {
  constexpr i32 width = Engine::neighbours;
#pragma unroll
  for (i32 i = 0; i < Engine::rows; ++i) {
    i32 row = Engine::rowOf(i);
    if (row >= to.rows)
      continue;
    T *line = static_cast<T *>(to.data) + row * to.stride;
#pragma unroll
    for (i32 j = 0; j < Engine::columns; j += width) {
      i32 column = Engine::columnOf(j);
      if (to.paired) {
        if (column < to.columns)
          storeSome<width>(line + column, &sums[i][j], to.adds);
        continue;
      }
#pragma unroll
      for (i32 n = 0; n < width; ++n)
        if (column + n < to.columns)
          storeSome<1>(line + column + n, &sums[i][j + n], to.adds);
    }
  }
}

} // namespace meshwork::grouped
