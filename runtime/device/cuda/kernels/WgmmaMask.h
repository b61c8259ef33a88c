// Which pairs of a query and a key count.
#pragma once

#include "runtime/device/cuda/kernels/WarpgroupProducts.h"
#include "runtime/device/cuda/kernels/WgmmaAttention.h"

namespace meshwork::runtime::cuda {

MESHWORK_INLINE int smaller(int a, int b) { return a < b ? a : b; }
MESHWORK_INLINE int larger(int a, int b) { return a > b ? a : b; }

MESHWORK_INLINE int endOf(const WgmmaRuns &runs) {
  return runs.count[1] ? runs.offset[1] + runs.count[1]
                       : runs.offset[0] + runs.count[0];
}
/// Which token the row is, or -1.
MESHWORK_INLINE int tokenOf(const WgmmaRuns &runs, int row) {
  bool isSecond = runs.count[1] && row >= runs.offset[1];
  int at = row - (isSecond ? runs.offset[1] : runs.offset[0]);
  return at < (isSecond ? runs.count[1] : runs.count[0])
             ? at + (isSecond ? runs.begin[1] : runs.begin[0])
             : -1;
}
/// The first row that is this token or one behind it, or the end.
MESHWORK_INLINE int rowFrom(const WgmmaRuns &runs, int token) {
  bool isSecond = runs.count[1] && token >= runs.begin[0] + runs.count[0];
  int at = larger(0, token - (isSecond ? runs.begin[1] : runs.begin[0]));
  return isSecond ? runs.offset[1] + smaller(at, runs.count[1])
                  : runs.offset[0] + smaller(at, runs.count[0]);
}

struct Range {
  int first, end;
};
/// The same in all lanes, which the assembler cannot know: it then works out
/// addresses once for the warp, and loops and branches need no mask of lanes.
MESHWORK_INLINE int sameInWarp(int value) {
  return __nvvm_shfl_sync_idx_i32(~0u, value, 0, 31);
}
MESHWORK_INLINE Range sameInWarp(const Range &range) {
  return {sameInWarp(range.first), sameInWarp(range.end)};
}

/// Which columns of keys the rows of one sample's queries see. Both ends rise
/// from row to row.
class Mask {
public:
  MESHWORK_INLINE Mask(const WgmmaShape &shape, int sample) : shape(shape) {
    if (shape.documents)
      begins = reinterpret_cast<const int *>(shape.documents) +
               static_cast<long long>(sample) * shape.rows;
  }

  MESHWORK_INLINE Range keysOf(int row) const {
    int query = tokenOf(shape.queries, row);
    if (query < 0) // Padding is behind all others.
      return {shape.columns, shape.columns};
    int first = shape.window ? larger(0, query - shape.window + 1) : 0;
    return {rowFrom(shape.keys, larger(first, documentOf(row, query))),
            rowFrom(shape.keys, shape.causal ? query + 1 : shape.sequence)};
  }
  /// Those that one of a block's queries sees, from a multiple of `step` on.
  MESHWORK_INLINE Range keysOfBlock(int row, int step) const {
    int end = smaller(row + wgmmaRows, endOf(shape.queries));
    if (row >= end)
      return {0, 0};
    return {keysOf(row).first / step * step, keysOf(end - 1).end};
  }
  /// Rows of queries that see each of these columns: those of documents end
  /// where the first begins behind it, which is looked for of all columns at
  /// once.
  template <int N>
  MESHWORK_INLINE void queriesOf(const int (&columns)[N],
                                 Range (&ranges)[N]) const {
    int keys[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      keys[n] = tokenOf(shape.keys, columns[n]);
      int end = endOf(shape.queries);
      ranges[n] = {shape.causal ? rowFrom(shape.queries, keys[n]) : 0,
                   shape.window ? rowFrom(shape.queries, keys[n] + shape.window)
                                : end};
      if (keys[n] < 0) // Padding is behind all others.
        ranges[n] = {end, end};
    }
    if (begins)
      endWithDocuments(keys, ranges);
  }

private:
  MESHWORK_INLINE int documentOf(int row, int query) const {
    return begins ? smaller(query, larger(0, begins[row])) : 0;
  }
  template <int N>
  MESHWORK_INLINE void endWithDocuments(const int (&keys)[N],
                                        Range (&ranges)[N]) const {
    int low[N];
#pragma unroll
    for (int n = 0; n < N; ++n)
      low[n] = ranges[n].first;
    for (int left = shape.rows; left > 0; left /= 2)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int middle = (low[n] + ranges[n].end) / 2;
        if (low[n] >= ranges[n].end)
          continue;
        if (documentOf(middle, tokenOf(shape.queries, middle)) > keys[n])
          ranges[n].end = middle;
        else
          low[n] = middle + 1;
      }
  }

  const WgmmaShape &shape;
  const int *begins = nullptr;
};

/// Which columns count with rows of a warpgroup: with a thread's two, and with
/// the first and the last of all 64. Both ends rise from row to row.
struct RowsMask {
  Range first, last, rows[2];

  /// Of queries, whose columns are keys.
  static MESHWORK_INLINE RowsMask ofQueries(const Mask &mask, int query) {
    Lane lane;
    return {sameInWarp(mask.keysOf(query)),
            sameInWarp(mask.keysOf(query + warpgroupRows - 1)),
            {mask.keysOf(query + lane.row), mask.keysOf(query + lane.row + 8)}};
  }
  /// Of keys, whose columns are queries.
  static MESHWORK_INLINE RowsMask ofKeys(const Mask &mask, int key) {
    Lane lane;
    int keys[] = {key, key + warpgroupRows - 1, key + lane.row,
                  key + lane.row + 8};
    Range found[4];
    mask.queriesOf(keys, found);
    return {sameInWarp(found[0]), sameInWarp(found[1]), {found[2], found[3]}};
  }

  /// No pair of the columns from `column` on counts.
  MESHWORK_INLINE bool hidesAll(int column, int columns) const {
    return first.first >= column + columns || last.end <= column;
  }
  MESHWORK_INLINE bool hidesSome(int column, int columns) const {
    return last.first > column || first.end < column + columns;
  }
  /// Puts `value` where a pair does not count.
  template <int R>
  MESHWORK_INLINE void hide(float (&scores)[R], int column, float value) const {
    if (!hidesSome(column, 2 * R))
      return;
    Lane lane;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      int at = column + i / 4 * 8 + lane.column + i % 2;
      const Range &counts = rows[i / 2 % 2];
      if (at < counts.first || at >= counts.end)
        scores[i] = value;
    }
  }
};

} // namespace meshwork::runtime::cuda
