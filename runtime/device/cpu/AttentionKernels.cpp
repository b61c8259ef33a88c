// Compiled once per instruction set, with MESHWORK_KERNELS naming the table.
// See AttentionKernels.h; the mathematics is in README.md.
#include "runtime/device/cpu/AttentionKernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/cpu/F32Tiles.h"
#include "runtime/device/cpu/RowKernels.h"
#include "runtime/device/cpu/Simd.h"
#include "runtime/device/cpu/SimdPhilox.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

struct Columns {
  int64_t first, end, padded;
  bool empty() const { return first >= end; }
  bool partial() const { return first > 0 || end < padded; }
};

MESHWORK_INLINE Columns seenBy(const ScoreBlock &block, int64_t row) {
  int64_t padded = (block.columns + numLanes - 1) / numLanes * numLanes;
  const QueryRow &query = block.queries[row];
  return {std::max<int64_t>(0, query.first - block.firstKey),
          std::min(block.columns, query.end - block.firstKey), padded};
}

MESHWORK_INLINE void fetchAhead(const ScoreBlock &block, int64_t row) {
  for (const FetchAhead &next : block.ahead) {
    if (row >= next.rows)
      continue;
    const std::byte *from = next.from + row * next.ld;
    for (int64_t at = next.begin; at < next.end; at += next.step)
      __builtin_prefetch(from + at, /*rw=*/0, /*locality=*/2);
  }
}

/// Writes `value` where the row does not look, up to the padded end.
MESHWORK_INLINE void fillUnseen(float *row, const Columns &seen, float value) {
  std::fill(row, row + seen.first, value);
  std::fill(row + seen.end, row + seen.padded, value);
}

/// The factor of dropout, keep_scale or zero, for sixteen elements.
MESHWORK_INLINE Floats keepFactors(const BlockDropout &dropout, int64_t query,
                                   int64_t column) {
  uint64_t row = dropout.firstIndex + query * dropout.queryStride;
  Words keys = loadAs<Words>(dropout.keys + column);
  Words words = philoxWords(dropout.random, row, keys);
  Ints kept = castTo<Ints>(words >= Words(dropout.threshold));
  return select(kept, Floats(dropout.keepScale), Floats(0.0f));
}

/// The largest of each lane, or with the bit in `sign` the smallest, negated.
MESHWORK_INLINE Floats laneMaxima(const float *scores, int64_t padded,
                                  Words sign) {
  Floats largest = Floats(minusInfinity);
  for (int64_t c = 0; c < padded; c += numLanes)
    largest =
        largerOf(castTo<Floats>(loadAs<Words>(scores + c) ^ sign), largest);
  return largest;
}

/// Rows that softmax takes together: their reductions are one.
constexpr int64_t rowsAtOnce = numLanes;

/// Maxima of up to sixteen rows, the running ones included. Rounding keeps the
/// order of numbers, so the largest may be scaled after it is found.
MESHWORK_INLINE Floats newMaxima(const ScoreBlock &block, Floats old,
                                 int64_t first, int64_t count) {
  Words sign = castTo<Words>(Floats(block.scale)) & 0x80000000u;
  Floats largest[rowsAtOnce];
  for (int64_t r = 0; r < rowsAtOnce; ++r) {
    largest[r] = Floats(minusInfinity);
    if (r >= count)
      continue;
    float *scores = block.scores + (first + r) * block.ld;
    Columns seen = seenBy(block, first + r);
    if (seen.empty())
      continue;
    if (seen.partial())
      fillUnseen(scores, seen, minusInfinity * block.scale);
    largest[r] = laneMaxima(scores, seen.padded, sign);
  }
  return largerOf(horizontal(largest, largerOf) * std::abs(block.scale), old);
}

/// Moves a row's sums to a maximum that is larger by -ln `factor`.
MESHWORK_INLINE void rescale(const SoftmaxState &state, int64_t row,
                             float factor) {
  float *out = state.out + row * state.d;
  state.sum[row] *= factor;
  for (int64_t i = 0; i < state.d; ++i)
    out[i] *= factor;
}

MESHWORK_INLINE void rescaleRows(const SoftmaxState &state, Floats old,
                                 Floats now, int64_t first, int64_t count) {
  if (!__builtin_reduce_or(now > old))
    return;
  // Before a row's first keys its sums are zero, and any factor will do.
  Floats factors = exponential(old - now);
  for (int64_t r = 0; r < count; ++r)
    if (now[r] > old[r])
      rescale(state, first + r, old[r] == minusInfinity ? 0 : factors[r]);
}

/// Returns the sums of a row's probabilities, one a lane.
template <typename T, bool dropped>
MESHWORK_INLINE Floats softmaxRow(const ScoreBlock &block,
                                  const SoftmaxState &state, int64_t row) {
  fetchAhead(block, row);
  const float *scores = block.scores + row * block.ld;
  T *probabilities = static_cast<T *>(block.probabilities) + row * block.ld;
  Columns seen = seenBy(block, row);
  Floats sums = Floats(0.0f);
  if (seen.empty()) {
    for (int64_t c = 0; c < seen.padded; c += numLanes)
      store(probabilities + c, sums);
    return sums;
  }
  int64_t query = block.queries[row].query;
  Floats scale = Floats(block.scale), shift = Floats(-state.max[row]);
  for (int64_t c = 0; c < seen.padded; c += numLanes) {
    Floats p = exponential(fma(load(scores + c), scale, shift));
    sums += p;
    if constexpr (dropped)
      p *= keepFactors(block.dropout, query, c);
    store(probabilities + c, p);
  }
  return sums;
}

template <typename T, bool dropped>
MESHWORK_INLINE void softmaxRows(const ScoreBlock &block,
                                 const SoftmaxState &state, int64_t first,
                                 int64_t count) {
  Floats old = Floats(0.0f);
  std::memcpy(&old, state.max + first, count * sizeof(float));
  Floats now = newMaxima(block, old, first, count);
  std::memcpy(state.max + first, &now, count * sizeof(float));
  rescaleRows(state, old, now, first, count);
  Floats sums[rowsAtOnce] = {}, all = Floats(0.0f);
  for (int64_t r = 0; r < count; ++r)
    sums[r] = softmaxRow<T, dropped>(block, state, first + r);
  std::memcpy(&all, state.sum + first, count * sizeof(float));
  all += horizontal(sums, [](Floats a, Floats b) { return a + b; });
  std::memcpy(state.sum + first, &all, count * sizeof(float));
}

/// The block with its cap applied, if it has one: its scores are scaled then.
MESHWORK_INLINE ScoreBlock capped(ScoreBlock block) {
  if (block.cap == 0)
    return block;
  Floats factor = Floats(block.scale / block.cap);
  for (int64_t row = 0; row < block.rows; ++row) {
    float *scores = block.scores + row * block.ld;
    for (int64_t c = 0, end = seenBy(block, row).padded; c < end; c += numLanes)
      store(scores + c,
            hyperbolicTangent(load(scores + c) * factor) * block.cap);
  }
  block.scale = 1;
  return block;
}

template <typename T>
void softmax(const ScoreBlock &given, const SoftmaxState &state) {
  ScoreBlock block = capped(given);
  for (int64_t row = 0; row < block.rows; row += rowsAtOnce) {
    int64_t count = std::min(rowsAtOnce, block.rows - row);
    if (block.dropout.active)
      softmaxRows<T, true>(block, state, row, count);
    else
      softmaxRows<T, false>(block, state, row, count);
  }
}

/// A cap has been applied to scores, which left them scaled.
template <typename T, bool dropped, bool hasCap>
MESHWORK_INLINE void gradRow(const GradBlock &grad, float scaleOfProducts,
                             int64_t row) {
  const ScoreBlock &block = grad.block;
  float *scores = block.scores + row * block.ld;
  float *dprob = grad.dprob + row * block.ld;
  T *probabilities = static_cast<T *>(block.probabilities) + row * block.ld;
  T *dscores = static_cast<T *>(grad.dscores) + row * block.ld;
  Columns seen = seenBy(block, row);
  // A row that sees no key of the sequence has no lse either.
  if (seen.empty() || grad.lse[row] == minusInfinity) {
    for (int64_t c = 0; c < seen.padded; c += numLanes) {
      store(probabilities + c, Floats(0.0f));
      store(dscores + c, Floats(0.0f));
    }
    return;
  }
  if (seen.partial()) {
    fillUnseen(scores, seen, minusInfinity * block.scale);
    fillUnseen(dprob, seen, 0);
  }
  int64_t query = block.queries[row].query;
  Floats scale = Floats(block.scale);
  for (int64_t c = 0; c < seen.padded; c += numLanes) {
    Floats score = load(scores + c);
    Floats p = exponential(fma(score, scale, Floats(-grad.lse[row])));
    Floats dp = load(dprob + c), kept = p;
    if constexpr (dropped) {
      Floats keep = keepFactors(block.dropout, query, c);
      kept *= keep;
      dp *= keep;
    }
    store(probabilities + c, kept);
    Floats ds = p * (dp - grad.delta[row]) * scaleOfProducts;
    if constexpr (hasCap) {
      // Where the row does not look, infinity times zero would be no number.
      Floats share = largerOf(score, Floats(-block.cap)) * (1 / block.cap);
      ds *= fma(-share, share, Floats(1.0f));
    }
    store(dscores + c, ds);
  }
}

template <typename T, bool dropped, bool hasCap>
void gradRows(const GradBlock &block, float scaleOfProducts) {
  for (int64_t row = 0; row < block.block.rows; ++row)
    gradRow<T, dropped, hasCap>(block, scaleOfProducts, row);
}

template <typename T> void grad(const GradBlock &given) {
  GradBlock block = given;
  block.block = capped(given.block);
  auto *rows = block.block.dropout.active
                   ? (block.block.cap > 0 ? gradRows<T, true, true>
                                          : gradRows<T, true, false>)
                   : (block.block.cap > 0 ? gradRows<T, false, true>
                                          : gradRows<T, false, false>);
  rows(block, given.block.scale);
}

void exponentials(const float *x, int64_t count, float *result) {
  for (int64_t i = 0; i < count; ++i)
    result[i] = exponential(Floats(x[i])).x;
}

} // namespace

extern const AttentionKernels MESHWORK_KERNELS = {
    multiply,     softmax<float>,   softmax<Bf16>,   grad<float>,  grad<Bf16>,
    round<float>, round<Bf16>,      rowDot<float>,   rowDot<Bf16>, widen<float>,
    widen<Bf16>,  transpose<float>, transpose<Bf16>, exponentials};

} // namespace meshwork::runtime::cpu
