// What attention's kernels know of an instruction, as literals once inlined.
#pragma once

#include "passes/codegen/gpu/library/AttentionGeometry.h"
#include "passes/codegen/gpu/library/Shared.h"

namespace meshwork::attention {

inline constexpr float log2e = 1.44269504088896341f,
                       ln2 = 0.693147180559945309f;

struct Strides {
  i64 sample, position, head; // in elements
};

/// The workspace: of each row of scores, lse * log2(e) and delta.
using RowValues = Vector<float, 2>;

/// `rows` of queries and `columns` of keys; the whole sequence has `sequence`
/// keys, of which the columns are all where there is no table of keys.
struct Shape {
  i64 rows, columns, sequence, heads, kvHeads, headDim;
  i64 aligned, wideResults, causal, window;
  i64 hasDocuments, hasPositions, hasKeys;
  i64 hasDropout, stream, threshold, globalHeads;
  float scale, keepScale, cap; // cap 0: none
};

/// Operands of i32; null where absent.
struct Tables {
  const i32 *documents, *positions, *keys, *random, *firstHead;
};

// Parameters of all functions, in the order of README.md.
#define ATTENTION_FUNCTION DEVICE_FUNCTION __attribute__((always_inline))
#define ATTENTION_SIZES                                                        \
  i64 rows, i64 columns, i64 sequence, i64 heads, i64 kvHeads, i64 headDim
#define ATTENTION_STRIDES(of) i64 of##Sample, i64 of##Position, i64 of##Head
#define ATTENTION_RULES                                                        \
  i64 aligned, i64 wideResults, i64 causal, i64 window, i64 hasDocuments,      \
      i64 hasPositions, i64 hasKeys, i64 hasDropout, i64 stream,               \
      i64 threshold, i64 globalHeads, float scale, float keepScale, float cap
#define ATTENTION_SHAPE                                                        \
  {rows,         columns,      sequence,    heads,      kvHeads,               \
   headDim,      aligned,      wideResults, causal,     window,                \
   hasDocuments, hasPositions, hasKeys,     hasDropout, stream,                \
   threshold,    globalHeads,  scale,       keepScale,  cap}
#define ATTENTION_TABLES {documents, positions, keys, random, firstHead}
#define ATTENTION_TABLE_PARAMETERS                                             \
  const i32 *documents, const i32 *positions, const i32 *keys,                 \
      const i32 *random, const i32 *firstHead
#define ATTENTION_FORWARD_PARAMETERS(T)                                        \
  const T *q, const T *k, const T *v, ATTENTION_TABLE_PARAMETERS, void *out,   \
      float *lse, ATTENTION_SIZES, ATTENTION_STRIDES(q), ATTENTION_STRIDES(k), \
      ATTENTION_STRIDES(v), ATTENTION_STRIDES(out), i64 lseSample,             \
      i64 lseHead, ATTENTION_RULES
#define ATTENTION_GRAD_PARAMETERS(T)                                           \
  const T *q, const T *k, const T *v, const T *out, const float *lse,          \
      const T *dout, ATTENTION_TABLE_PARAMETERS, void *dq, void *dk, void *dv, \
      RowValues *workspace, ATTENTION_SIZES, ATTENTION_STRIDES(q),             \
      ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), ATTENTION_STRIDES(out),      \
      ATTENTION_STRIDES(dout), ATTENTION_STRIDES(dq), ATTENTION_STRIDES(dk),   \
      ATTENTION_STRIDES(dv), i64 lseSample, i64 lseHead, ATTENTION_RULES
/// `Each` for every class.
#define ATTENTION_CLASSES(Each)                                                \
  Each(16) Each(32) Each(64) Each(80) Each(96) Each(128) Each(192) Each(256)

MESHWORK_INLINE int smaller(i64 a, i64 b) {
  return static_cast<int>(a < b ? a : b);
}
MESHWORK_INLINE int larger(i64 a, i64 b) {
  return static_cast<int>(a > b ? a : b);
}

template <typename T>
MESHWORK_INLINE T *rowAt(T *base, const Strides &strides, i64 sample,
                         i64 position, i64 head) {
  return base + sample * strides.sample + position * strides.position +
         head * strides.head;
}

/// Which query of the sequence a row is; negative: padding.
MESHWORK_INLINE int queryOf(const Shape &shape, const Tables &tables, int row) {
  return shape.hasPositions ? tables.positions[smaller(row, shape.rows - 1)]
                            : row;
}
/// Which key of the sequence a column is; negative: padding.
MESHWORK_INLINE int keyOf(const Shape &shape, const Tables &tables,
                          int column) {
  if (!shape.hasKeys)
    return column;
  return column < shape.columns ? tables.keys[column] : -1;
}
/// The first column whose key is `key` or a later one. Padding is behind them
/// all, as numbers without a sign are ordered.
MESHWORK_INLINE int columnFrom(const Shape &shape, const Tables &tables,
                               u32 key) {
  int low = 0, end = static_cast<int>(shape.columns);
  while (low < end) {
    int middle = low + (end - low) / 2;
    if (static_cast<u32>(tables.keys[middle]) < key)
      low = middle + 1;
    else
      end = middle;
  }
  return low;
}
/// Columns from here on are padding, or not there.
MESHWORK_INLINE int endOfKeys(const Shape &shape, const Tables &tables) {
  return shape.hasKeys ? columnFrom(shape, tables, 1u << 31)
                       : static_cast<int>(shape.columns);
}

} // namespace meshwork::attention
