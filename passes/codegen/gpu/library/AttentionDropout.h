// Dropout of probabilities, at the places that the CPU draws for.
#pragma once

#include "passes/codegen/gpu/library/AttentionMask.h"

namespace meshwork::attention {

/// Philox4x32-10, the first output word: runtime/device/cpu/Philox.h.
MESHWORK_INLINE u32 philoxWord(u32 seed, u32 stream, u32 step, u64 index) {
  u32 c0 = static_cast<u32>(index), c1 = static_cast<u32>(index >> 32),
      c2 = step, c3 = 0;
#pragma unroll
  for (u32 round = 0; round < 10; ++round) {
    u64 left = u64{0xD2511F53} * c0, right = u64{0xCD9E8D57} * c2;
    c0 = static_cast<u32>(right >> 32) ^ c1 ^ (seed + round * 0x9E3779B9u);
    c1 = static_cast<u32>(right);
    c2 = static_cast<u32>(left >> 32) ^ c3 ^ (stream + round * 0xBB67AE85u);
    c3 = static_cast<u32>(left);
  }
  return c0;
}

/// Whether this run drops anything: an evaluation, of no sample, does not.
MESHWORK_INLINE bool drops(const Shape &shape, const Tables &tables) {
  return shape.hasDropout && static_cast<int>(tables.random[2]) >= 0;
}

/// Dropout of the probabilities of one sample and query head.
struct Dropout {
  u32 seed = 0, step = 0;
  u64 firstRow = 0; // of the global tensor's rows: the head's query 0
  const Tables &tables;

  MESHWORK_INLINE Dropout(const Shape &shape, const Tables &tables, int sample,
                          int head)
      : tables(tables) {
    if (!shape.hasDropout)
      return;
    seed = static_cast<u32>(tables.random[0]);
    step = static_cast<u32>(tables.random[1]);
    u64 globalSample = u64{static_cast<u32>(tables.random[2])} + sample;
    u64 globalHead =
        static_cast<u64>(head) +
        (tables.firstHead ? static_cast<u32>(*tables.firstHead) : 0);
    firstRow = (globalSample * shape.globalHeads + globalHead) * shape.sequence;
  }
  MESHWORK_INLINE bool keeps(const Shape &shape, int row, int column) const {
    u64 index = (firstRow + queryOf(shape, tables, row)) * shape.sequence +
                keyOf(shape, tables, column);
    return philoxWord(seed, static_cast<u32>(shape.stream), step, index) >=
           static_cast<u32>(shape.threshold);
  }
};

/// Which of a thread's elements dropout keeps: bit C * i + j, in words.
template <typename Engine, bool rowsAreKeys, int R, int C> struct Kept {
  u32 words[(R * C + 31) / 32];

  MESHWORK_INLINE Kept(const Shape &shape, const Dropout &dropout,
                       const Block &block) {
    Place<Engine, rowsAreKeys> place(block);
#pragma unroll
    for (int first = 0; first < R * C; first += 32) {
      u32 bits = 0;
      // Not unrolled: registers are full of sums, and all at once it is long.
#pragma unroll 1
      for (int bit = 0; bit < 32 && bit < R * C; bit += atOnce)
#pragma unroll
        for (int e = bit; e < bit + atOnce; ++e) {
          int i = (first + e) / C, j = (first + e) % C;
          bits |= u32{dropout.keeps(shape, place.queryAt(i, j),
                                    place.columnAt(i, j))}
                  << e;
        }
      words[first / 32] = bits;
    }
  }

  MESHWORK_INLINE bool keeps(int i, int j) const {
    return words[(C * i + j) / 32] >> (C * i + j) % 32 & 1;
  }

private:
  static constexpr int atOnce = R * C < 4 ? R * C : 4;
};

/// What is kept times `factor`, else zero; rows are queries.
template <typename Engine, int R, int C>
MESHWORK_INLINE void drop(float (&values)[R][C], const Shape &shape,
                          const Dropout &dropout, const Block &block,
                          float factor) {
  if (!drops(shape, dropout.tables))
    return;
  Kept<Engine, false, R, C> kept(shape, dropout, block);
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      values[i][j] = kept.keeps(i, j) ? values[i][j] * factor : 0.0f;
}

} // namespace meshwork::attention
