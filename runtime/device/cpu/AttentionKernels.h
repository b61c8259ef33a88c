// The parts of attention between its matrix products: softmax of one block and
// its gradient. Compiled for several instruction sets (AttentionKernels.cpp);
// attentionKernels() gives the best that this machine runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/device/cpu/Philox.h"

namespace meshwork::runtime::cpu {

/// One row of queries: which query of the sequence it is (negative: padding),
/// and the rows [first, end) of k that it sees.
struct QueryRow {
  int64_t query = -1;
  int64_t first = 0, end = 0;
};

/// Dropout of probabilities; `active` false means none. The element of query i
/// and key j of the sequence has the index firstIndex + i * queryStride + j
/// (Philox.h).
struct BlockDropout {
  bool active = false;
  PhiloxStream random;
  uint32_t threshold = 0;
  float keepScale = 1;
  uint64_t firstIndex = 0, queryStride = 0;
  /// The key of the sequence in each column, up to a multiple of sixteen.
  const int32_t *keys = nullptr;
};

/// Rows of memory that are needed after a block, `ld` bytes apart. With row r
/// of the block softmax fetches the lines at `begin`, `begin` + `step`, ...
/// below `end` of row r into the second-level cache. All of them at once would
/// fill the queue of misses.
constexpr int64_t fetchedLine = 64; // bytes
struct FetchAhead {
  const std::byte *from = nullptr;
  int64_t ld = 0, rows = 0;
  int64_t begin = 0, end = 0, step = fetchedLine; // bytes
};

/// One block of scores: `rows` queries by `columns` keys. Rows are `ld`
/// elements apart; ld is a multiple of 16 and the space up to it is scratch.
struct ScoreBlock {
  int64_t rows = 0, columns = 0, ld = 0;
  float *scores = nullptr;  // products of q and k, unscaled; overwritten
  float scale = 1, cap = 0; // scaled ones become cap tanh(score / cap)
  const QueryRow *queries = nullptr; // [rows]
  int64_t firstKey = 0;              // the row of k in column 0
  /// Probabilities in the type of v, same ld; with f32 it may be `scores`.
  void *probabilities = nullptr;
  BlockDropout dropout;
  /// k and v of the next block of keys, for softmax. The gradient fetches
  /// nothing: it took as much longer as the copies that followed took less.
  FetchAhead ahead[2];

  /// `turn` of as many blocks as share the lines.
  void fetch(const FetchAhead (&next)[2], int64_t turn) {
    std::copy(next, next + 2, ahead);
    for (FetchAhead &rows : ahead)
      rows.begin = turn * fetchedLine;
  }
};

/// Running softmax of `rows` queries over their blocks of keys. Starts with
/// maxima of -infinity and sums of zero.
struct SoftmaxState {
  float *max = nullptr; // [rows]
  float *sum = nullptr; // [rows]
  float *out = nullptr; // [rows, d], sums of probability times v so far
  int64_t d = 0;
};

struct GradBlock {
  ScoreBlock block;
  float *dprob = nullptr;       // products of dout and v; overwritten
  void *dscores = nullptr;      // type of v; with f32 it may be `dprob`
  const float *lse = nullptr;   // [rows]
  const float *delta = nullptr; // [rows], sums of dout times out
};

/// to[m, n] = lhs[m, k] * rhs[k, n] (+ to), all f32. n counts up to a multiple
/// of sixteen, for which rows of rhs and `to` have room.
struct F32Product {
  int64_t m = 0, n = 0, k = 0;
  const float *lhs = nullptr;
  int64_t lhsRow = 0, lhsStep = 0; // elements to the next row, along k
  const float *rhs = nullptr;
  int64_t rhsLd = 0;
  float *to = nullptr;
  int64_t toLd = 0;
  bool accumulate = false;
};

struct AttentionKernels {
  void (*multiply)(const F32Product &);
  /// Turns scores into exp(score - running max), dropped out, and rescales
  /// `state` to the new maximum.
  void (*softmaxF32)(const ScoreBlock &, const SoftmaxState &);
  void (*softmaxBf16)(const ScoreBlock &, const SoftmaxState &);
  /// Recomputes probabilities (dropped out) and writes gradients of scores.
  void (*gradF32)(const GradBlock &);
  void (*gradBf16)(const GradBlock &);
  /// to[r, :] = from[r, :] * factor[r] (all ones when factor is null).
  void (*roundF32)(const float *from, int64_t fromLd, const float *factor,
                   int64_t rows, int64_t d, void *to, int64_t toLd);
  void (*roundBf16)(const float *from, int64_t fromLd, const float *factor,
                    int64_t rows, int64_t d, void *to, int64_t toLd);
  /// sums[r] = sum over d of a[r, :] * b[r, :].
  void (*rowDotF32)(const void *a, int64_t aLd, const void *b, int64_t bLd,
                    int64_t rows, int64_t d, float *sums);
  void (*rowDotBf16)(const void *a, int64_t aLd, const void *b, int64_t bLd,
                     int64_t rows, int64_t d, float *sums);
  /// to[r, :] = from[r, :].
  void (*widenF32)(const void *from, int64_t fromLd, int64_t rows, int64_t d,
                   float *to, int64_t toLd);
  void (*widenBf16)(const void *from, int64_t fromLd, int64_t rows, int64_t d,
                    float *to, int64_t toLd);
  /// to[:, r] = from[r, :].
  void (*transposeF32)(const void *from, int64_t fromLd, int64_t rows,
                       int64_t d, float *to, int64_t toLd);
  void (*transposeBf16)(const void *from, int64_t fromLd, int64_t rows,
                        int64_t d, float *to, int64_t toLd);
  /// e^x, for tests; see Simd.h.
  void (*exponential)(const float *x, int64_t count, float *result);
};

const AttentionKernels &attentionKernels();

// One table per instruction set.
extern const AttentionKernels attentionKernelsBase;
extern const AttentionKernels attentionKernelsV3;
extern const AttentionKernels attentionKernelsV4;
extern const AttentionKernels attentionKernelsV4Bf16;

} // namespace meshwork::runtime::cpu
