// Which keys the rows of a block of queries see.
#pragma once

#include "passes/codegen/gpu/library/Attention.h"

namespace meshwork::attention {

struct Range {
  int first, end;
};

/// A rectangle of scores, its queries by their rows.
struct Block {
  int query, queries, key, keys;
};

/// Which keys the rows of one sample see. Of each row only its query and where
/// the document begins are read from memory: they are asked for once, not for
/// every key. So is of each column which key it is.
struct Mask {
  const Shape &shape;
  const Tables &tables;
  const i32 *begins; // of the sample's documents, by row

  MESHWORK_INLINE Mask(const Shape &shape, const Tables &tables, int sample)
      : shape(shape), tables(tables),
        begins(tables.documents + sample * shape.rows) {}

  MESHWORK_INLINE int queryOf(int row) const {
    return attention::queryOf(shape, tables, row);
  }
  MESHWORK_INLINE int keyOf(int column) const {
    return attention::keyOf(shape, tables, column);
  }

  /// Where the document of a row begins; without documents none is hidden.
  /// Whatever stands there, it is a position up to the query's own.
  MESHWORK_INLINE int documentOf(int row) const {
    if (!shape.hasDocuments)
      return 0;
    int last = smaller(row, shape.rows - 1);
    return smaller(queryOf(last), larger(0, begins[last]));
  }

  /// Columns that rows [first, end) see. Documents never begin earlier than
  /// those of queries before.
  MESHWORK_INLINE Range columnsOf(int first, int end) const {
    if (shape.hasPositions)
      return columnsOf(keysOfAny(first, end));
    Range keys = {shape.window ? larger(0, first - shape.window + 1) : 0,
                  shape.causal ? end : static_cast<int>(shape.sequence)};
    if (shape.hasDocuments)
      keys.first = larger(keys.first, documentOf(first));
    return keys;
  }
  /// Where keys are; nothing where no column is one of them.
  MESHWORK_INLINE Range columnsOf(Range keys) const {
    if (!shape.hasKeys)
      return keys;
    Range found = {columnFrom(shape, tables, keys.first),
                   columnFrom(shape, tables, keys.end)};
    return found.first < found.end ? found : Range{0, 0};
  }
  /// From the first key of columns [first, end) to the last. Other ranks may
  /// have some between them.
  MESHWORK_INLINE Range keysOfColumns(int first, int end) const {
    if (!shape.hasKeys)
      return {first, end};
    return first < end ? Range{keyOf(first), keyOf(end - 1) + 1} : Range{0, 0};
  }
  /// The keys that rows in whatever order see; none of rows that are padding.
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
  /// Rows that see columns [first, end), but for documents.
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

  /// The first of the steps of rows from `row` on of which one sees keys
  /// between those of `keys`, or `end`.
  MESHWORK_INLINE int nextSeeing(int row, int end, int step, Range keys) const {
    for (; shape.hasPositions && row < end; row += step) {
      Range seen = keysOfAny(row, smaller(row + step, shape.rows));
      if (seen.first < keys.end && keys.first < seen.end)
        break;
    }
    return row;
  }

  /// Some pair of the block is not seen, or its key is past the end. May be
  /// said of rows that are not neighbours in the sequence.
  MESHWORK_INLINE bool isPartial(const Block &block) const {
    int lastRow = block.query + block.queries - 1, end = block.key + block.keys;
    int key = keyOf(block.key), endKey = keyOf(end - 1) + 1;
    if (shape.hasKeys && endKey == 0)
      return true;
    int query = queryOf(block.query), lastQuery = queryOf(lastRow);
    if (shape.hasPositions && (query < 0 || lastQuery < query ||
                               lastQuery - query != block.queries - 1))
      return true;
    if (shape.hasDocuments && documentOf(lastRow) > key)
      return true;
    return endKey > shape.sequence || (shape.causal && endKey - 1 > query) ||
           (shape.window && lastQuery - key >= shape.window);
  }
  /// With a causal mask no query sees past the end, but such as are past it.
  MESHWORK_INLINE bool sees(int query, int document, int key) const {
    if (shape.hasDocuments && key < document)
      return false;
    if ((shape.hasPositions && query < 0) || (shape.hasKeys && key < 0))
      return false;
    return (shape.causal ? query - key >= 0 : key < shape.sequence) &&
           (!shape.window || query - key < shape.window);
  }
};

/// Where this thread's first score is in the whole matrix; the others are at
/// constant distances. Rows are queries and columns keys, or the other way
/// round.
template <typename Engine, bool rowsAreKeys> struct Place {
  int query, key;

  MESHWORK_INLINE explicit Place(const Block &block) {
    u32 thread = fresh(threadInBlock()), row = Engine::firstRow(thread),
        column = Engine::firstColumn(thread);
    query = block.query + (rowsAreKeys ? column : row);
    key = block.key + (rowsAreKeys ? row : column);
  }
  MESHWORK_INLINE int queryAt(int i, int j) const {
    return query + (rowsAreKeys ? Engine::columnStep(j) : Engine::rowStep(i));
  }
  MESHWORK_INLINE int columnAt(int i, int j) const {
    return key + (rowsAreKeys ? Engine::rowStep(i) : Engine::columnStep(j));
  }
};

/// Puts `value` where a query does not see a key.
template <typename Engine, bool rowsAreKeys, int R, int C>
MESHWORK_INLINE void fillUnseen(float (&scores)[R][C], const Mask &mask,
                                const Block &block, float value) {
  Place<Engine, rowsAreKeys> place(block);
  int queries[rowsAreKeys ? C : R], documents[rowsAreKeys ? C : R],
      keys[rowsAreKeys ? R : C];
#pragma unroll
  for (int n = 0; n < (rowsAreKeys ? C : R); ++n) {
    queries[n] = mask.queryOf(place.queryAt(n, n));
    documents[n] = mask.documentOf(place.queryAt(n, n));
  }
#pragma unroll
  for (int n = 0; n < (rowsAreKeys ? R : C); ++n)
    keys[n] = mask.keyOf(place.columnAt(n, n));
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < C; ++j)
      if (!mask.sees(queries[rowsAreKeys ? j : i],
                     documents[rowsAreKeys ? j : i], keys[rowsAreKeys ? i : j]))
        scores[i][j] = value;
}

} // namespace meshwork::attention
