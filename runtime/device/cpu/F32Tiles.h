// Products of small f32 blocks, for files that are compiled once per
// instruction set (Simd.h says why everything has internal linkage).
#pragma once

#include <algorithm>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Simd.h"

namespace meshwork::runtime::cpu {
namespace {

// Sums of a tile fill the registers that its operands leave: 24 of 32 by
// AVX-512, twelve of sixteen halves or quarters of a vector below.
#ifdef __AVX512F__
constexpr int tileRows = 6, tileVectors = 4;
#elif defined(__AVX__)
constexpr int tileRows = 6, tileVectors = 1;
#else
constexpr int tileRows = 3, tileVectors = 1;
#endif
/// Steps of k by which an lhs stored along its rows is fetched ahead: each
/// step is in another line.
constexpr int64_t stepsAhead = 4;

template <int rows, int vectors>
MESHWORK_INLINE void multiplyTile(const F32Product &p, int64_t row,
                                  int64_t column) {
  const float *lhs = p.lhs + row * p.lhsRow, *rhs = p.rhs + column;
  Floats sums[rows][vectors] = {};
  for (int64_t k = 0; k < p.k; ++k, lhs += p.lhsStep, rhs += p.rhsLd) {
    __builtin_prefetch(lhs + stepsAhead * p.lhsStep);
    Floats right[vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      right[v] = load(rhs + v * numLanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        sums[r][v] = fma(Floats(lhs[r * p.lhsRow]), right[v], sums[r][v]);
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      float *to = p.to + (row + r) * p.toLd + column + v * numLanes;
      store(to, p.accumulate ? load(to) + sums[r][v] : sums[r][v]);
    }
}

/// The last rows, fewer than `rows`.
template <int rows, int vectors>
MESHWORK_INLINE void multiplyRest(const F32Product &p, int64_t row,
                                  int64_t column) {
  if constexpr (rows > 1) {
    if (p.m - row == rows - 1)
      multiplyTile<rows - 1, vectors>(p, row, column);
    else
      multiplyRest<rows - 1, vectors>(p, row, column);
  }
}

/// All rows of a panel of rhs, which then stays in the first-level cache.
template <int vectors> void multiplyPanel(const F32Product &p, int64_t column) {
  int64_t row = 0;
  for (; row + tileRows <= p.m; row += tileRows)
    multiplyTile<tileRows, vectors>(p, row, column);
  multiplyRest<tileRows, vectors>(p, row, column);
}

void multiply(const F32Product &p) {
  int64_t column = 0;
  for (; column + tileVectors * numLanes <= p.n;
       column += tileVectors * numLanes)
    multiplyPanel<tileVectors>(p, column);
  for (; column < p.n; column += numLanes)
    multiplyPanel<1>(p, column);
}

} // namespace
} // namespace meshwork::runtime::cpu
