// What attention's kernels know of an instruction, as literals once inlined,
// and what follows from positions alone: visibility, dropout, ranges.
#pragma once

#include "passes/codegen/gpu/library/AttentionGeometry.h"
#include "passes/codegen/gpu/library/Device.h"

namespace meshwork::attention {

#define MESHWORK_INLINE __device__ __attribute__((always_inline)) inline

inline constexpr float log2e = 1.44269504088896341f,
                       ln2 = 0.693147180559945309f;

struct Strides {
  i64 sample, position, head; // in elements
};

/// The workspace: of each row of scores, lse * log2(e) and delta.
using RowValues = Vector<float, 2>;

/// `rows` of queries, of a sequence of keys.
struct Shape {
  i64 rows, sequence, heads, kvHeads, headDim;
  i64 aligned, causal, window, hasDocuments, hasPositions;
  i64 hasDropout, stream, threshold, globalHeads;
  float scale, keepScale;
};

// Parameters of all functions, in the order of README.md.
#define ATTENTION_FUNCTION DEVICE_FUNCTION __attribute__((always_inline))
#define ATTENTION_SIZES                                                        \
  i64 rows, i64 sequence, i64 heads, i64 kvHeads, i64 headDim
#define ATTENTION_STRIDES(of) i64 of##Sample, i64 of##Position, i64 of##Head
#define ATTENTION_RULES                                                        \
  i64 aligned, i64 causal, i64 window, i64 hasDocuments, i64 hasPositions,     \
      i64 hasDropout, i64 stream, i64 threshold, i64 globalHeads, float scale, \
      float keepScale
#define ATTENTION_SHAPE                                                        \
  {rows,      sequence,    heads,        kvHeads,      headDim,    aligned,    \
   causal,    window,      hasDocuments, hasPositions, hasDropout, stream,     \
   threshold, globalHeads, scale,        keepScale}
#define ATTENTION_FORWARD_PARAMETERS(T)                                        \
  const T *q, const T *k, const T *v, const i32 *documents,                    \
      const i32 *positions, const i32 *random, const i32 *firstHead, T *out,   \
      float *lse, ATTENTION_SIZES, ATTENTION_STRIDES(q), ATTENTION_STRIDES(k), \
      ATTENTION_STRIDES(v), ATTENTION_STRIDES(out), i64 lseSample,             \
      i64 lseHead, ATTENTION_RULES
#define ATTENTION_GRAD_PARAMETERS(T)                                           \
  const T *q, const T *k, const T *v, const T *out, const float *lse,          \
      const T *dout, const i32 *documents, const i32 *positions,               \
      const i32 *random, const i32 *firstHead, T *dq, T *dk, T *dv,            \
      RowValues *workspace, ATTENTION_SIZES, ATTENTION_STRIDES(q),             \
      ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), ATTENTION_STRIDES(out),      \
      ATTENTION_STRIDES(dout), ATTENTION_STRIDES(dq), ATTENTION_STRIDES(dk),   \
      ATTENTION_STRIDES(dv), i64 lseSample, i64 lseHead, ATTENTION_RULES
/// `Each` for every class.
#define ATTENTION_CLASSES(Each)                                                \
  Each(16) Each(32) Each(64) Each(80) Each(96) Each(128) Each(192) Each(256)

/// Hides where a value comes from. LLVM would otherwise keep the address of
/// every access in a register of its own through the loop over blocks; so it
/// forms them where they are used.
MESHWORK_INLINE u32 fresh(u32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

struct Range {
  int first, end;
};

/// A rectangle of scores, its queries by their rows.
struct Block {
  int query, queries, key, keys;
};

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
MESHWORK_INLINE int queryOf(const Shape &shape, const i32 *positions, int row) {
  return shape.hasPositions ? positions[smaller(row, shape.rows - 1)] : row;
}

/// Which keys the rows of one sample see. Of each row only its query and where
/// the document begins are read from memory: they are asked for once, not for
/// every key.
struct Mask {
  const Shape &shape;
  const i32 *begins; // of the sample's documents, by row
  const i32 *positions;

  MESHWORK_INLINE Mask(const Shape &shape, const i32 *documents,
                       const i32 *positions, int sample)
      : shape(shape), begins(documents + sample * shape.rows),
        positions(positions) {}

  MESHWORK_INLINE int queryOf(int row) const {
    return attention::queryOf(shape, positions, row);
  }

  /// Where the document of a row begins; without documents none is hidden.
  /// Whatever stands there, it is a position up to the query's own.
  MESHWORK_INLINE int documentOf(int row) const {
    if (!shape.hasDocuments)
      return 0;
    int last = smaller(row, shape.rows - 1);
    return smaller(queryOf(last), larger(0, begins[last]));
  }

  /// Keys that rows [first, end) see. Documents never begin earlier than those
  /// of queries before.
  MESHWORK_INLINE Range keysOf(int first, int end) const {
    if (shape.hasPositions)
      return keysOfAny(first, end);
    Range keys = {shape.window ? larger(0, first - shape.window + 1) : 0,
                  shape.causal ? end : static_cast<int>(shape.sequence)};
    if (shape.hasDocuments)
      keys.first = larger(keys.first, documentOf(first));
    return keys;
  }
  /// Of rows in whatever order; none of rows that are padding.
  MESHWORK_INLINE Range keysOfAny(int first, int end) const {
    int lowest = static_cast<int>(shape.sequence), highest = -1,
        document = lowest;
    for (int row = first; row < end; ++row) {
      int query = queryOf(row);
      if (query < 0)
        continue;
      lowest = smaller(lowest, query);
      highest = larger(highest, query);
      document = smaller(document, documentOf(row));
    }
    if (highest < 0)
      return {0, 0};
    return {larger(document,
                   shape.window ? larger(0, lowest - shape.window + 1) : 0),
            shape.causal ? smaller(shape.sequence, i64{highest} + 1)
                         : static_cast<int>(shape.sequence)};
  }
  /// Rows that see keys [first, end), but for documents.
  MESHWORK_INLINE Range queriesOf(int first, int end) const {
    if (shape.hasPositions)
      return {0, static_cast<int>(shape.rows)};
    return {shape.causal ? first : 0,
            shape.window ? smaller(shape.sequence, end - 1 + shape.window)
                         : static_cast<int>(shape.sequence)};
  }
  /// The end of queries that are walked in steps from `first` on: where a
  /// step's documents all begin at `endKey` or later.
  MESHWORK_INLINE int endOfDocuments(Range queries, int step,
                                     int endKey) const {
    int low = queries.first + step, end = queries.end;
    while (shape.hasDocuments && !shape.hasPositions && low < end) {
      int middle = low + (end - low) / (2 * step) * step;
      if (documentOf(middle) >= endKey)
        end = middle;
      else
        low = middle + step;
    }
    return end;
  }

  /// The first of the steps of rows from `row` on of which one sees keys of
  /// [key, endKey), or `end`.
  MESHWORK_INLINE int nextSeeing(int row, int end, int step, int key,
                                 int endKey) const {
    for (; shape.hasPositions && row < end; row += step) {
      Range keys = keysOfAny(row, smaller(row + step, shape.rows));
      if (keys.first < endKey && key < keys.end)
        break;
    }
    return row;
  }

  /// Some pair of the block is not seen, or its key is past the end. May be
  /// said of rows that are not neighbours in the sequence.
  MESHWORK_INLINE bool isPartial(const Block &block) const {
    int lastRow = block.query + block.queries - 1,
        endKey = block.key + block.keys;
    int query = queryOf(block.query), lastQuery = queryOf(lastRow);
    if (shape.hasPositions && (query < 0 || lastQuery < query ||
                               lastQuery - query != block.queries - 1))
      return true;
    if (shape.hasDocuments && documentOf(lastRow) > block.key)
      return true;
    return endKey > shape.sequence || (shape.causal && endKey - 1 > query) ||
           (shape.window && lastQuery - block.key >= shape.window);
  }
  /// With a causal mask no query sees past the end, but such as are past it.
  MESHWORK_INLINE bool sees(int query, int document, int key) const {
    if (shape.hasDocuments && key < document)
      return false;
    if (shape.hasPositions && query < 0)
      return false;
    return (shape.causal ? query - key >= 0 : key < shape.sequence) &&
           (!shape.window || query - key < shape.window);
  }
};

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

/// Dropout of the probabilities of one sample and query head.
struct Dropout {
  u32 seed = 0, step = 0;
  u64 firstRow = 0; // of the global tensor's rows: the head's query 0
  const i32 *positions;

  MESHWORK_INLINE Dropout(const Shape &shape, const i32 *random,
                          const i32 *firstHead, const i32 *positions,
                          int sample, int head)
      : positions(positions) {
    if (!shape.hasDropout)
      return;
    seed = static_cast<u32>(random[0]);
    step = static_cast<u32>(random[1]);
    u64 globalSample = u64{static_cast<u32>(random[2])} + sample;
    u64 globalHead =
        static_cast<u64>(head) + (firstHead ? static_cast<u32>(*firstHead) : 0);
    firstRow = (globalSample * shape.globalHeads + globalHead) * shape.sequence;
  }
  MESHWORK_INLINE bool keeps(const Shape &shape, int row, int key) const {
    u64 index =
        (firstRow + queryOf(shape, positions, row)) * shape.sequence + key;
    return philoxWord(seed, static_cast<u32>(shape.stream), step, index) >=
           static_cast<u32>(shape.threshold);
  }
};

} // namespace meshwork::attention
