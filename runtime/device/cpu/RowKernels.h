// Copies, roundings and sums of rows, for files that are compiled once per
// instruction set (Simd.h says why everything has internal linkage). What each
// does is in AttentionKernels.h.
#pragma once

#include <algorithm>

#include "runtime/device/cpu/Simd.h"

namespace meshwork::runtime::cpu {
namespace {

template <typename T>
void round(const float *from, int64_t fromLd, const float *factor, int64_t rows,
           int64_t d, void *to, int64_t toLd) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *source = from + row * fromLd;
    T *target = static_cast<T *>(to) + row * toLd;
    float by = factor ? factor[row] : 1.0f;
    int64_t i = 0;
    for (; i + numLanes <= d; i += numLanes)
      store(target + i, load(source + i) * by);
    for (; i < d; ++i)
      assign(target[i], source[i] * by);
  }
}

template <typename T>
void rowDot(const void *a, int64_t aLd, const void *b, int64_t bLd,
            int64_t rows, int64_t d, float *sums) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *left = static_cast<const T *>(a) + row * aLd;
    const T *right = static_cast<const T *>(b) + row * bLd;
    Floats lanes = Floats(0.0f);
    int64_t i = 0;
    for (; i + numLanes <= d; i += numLanes)
      lanes = fma(load(left + i), load(right + i), lanes);
    float sum = horizontalSum(lanes);
    for (; i < d; ++i)
      sum += toFloat(left[i]) * toFloat(right[i]);
    sums[row] = sum;
  }
}

template <typename T>
void widen(const void *from, int64_t fromLd, int64_t rows, int64_t d, float *to,
           int64_t toLd) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *source = static_cast<const T *>(from) + row * fromLd;
    float *target = to + row * toLd;
    int64_t i = 0;
    for (; i + numLanes <= d; i += numLanes)
      store(target + i, load(source + i));
    for (; i < d; ++i)
      target[i] = toFloat(source[i]);
  }
}

/// Sixteen by sixteen elements. Four times, the first and the second half are
/// dealt alternately, as cards are: that moves each bit of a place by one.
template <typename T>
MESHWORK_INLINE void transposeTile(const T *from, int64_t fromLd, float *to,
                                   int64_t toLd) {
  Floats rows[numLanes], dealt[numLanes];
  for (int64_t i = 0; i < numLanes; ++i)
    rows[i] = load(from + i * fromLd);
  for (int64_t round = 0; round < 4; ++round) {
    for (int64_t i = 0; i < numLanes / 2; ++i) {
      Floats a = rows[i], b = rows[i + numLanes / 2];
      dealt[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19,
                                             4, 20, 5, 21, 6, 22, 7, 23);
      dealt[2 * i + 1] = __builtin_shufflevector(
          a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::copy(dealt, dealt + numLanes, rows);
  }
  for (int64_t i = 0; i < numLanes; ++i)
    store(to + i * toLd, rows[i]);
}

template <typename T>
void transpose(const void *from, int64_t fromLd, int64_t rows, int64_t d,
               float *to, int64_t toLd) {
  const T *source = static_cast<const T *>(from);
  int64_t wholeRows = rows / numLanes * numLanes;
  int64_t wholeD = d / numLanes * numLanes;
  for (int64_t r = 0; r < wholeRows; r += numLanes)
    for (int64_t i = 0; i < wholeD; i += numLanes)
      transposeTile(source + r * fromLd + i, fromLd, to + i * toLd + r, toLd);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = r < wholeRows ? wholeD : 0; i < d; ++i)
      to[i * toLd + r] = toFloat(source[r * fromLd + i]);
}

} // namespace
} // namespace meshwork::runtime::cpu
