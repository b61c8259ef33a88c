// What AttentionShape says of blocks: which keys each row of queries sees, and
// the keys as products take them. Everything else follows from the rows' runs.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/AttentionShape.h"

namespace meshwork::runtime::cpu {
namespace {

const int32_t *integersAt(const std::optional<Tensor> &table, std::byte *arena,
                          int64_t index) {
  return table ? reinterpret_cast<const int32_t *>(table->in(arena)) + index
               : nullptr;
}

/// What of a sample's operands says which keys a row sees.
struct Tables {
  const AttentionShape &shape;
  const int32_t *documents, *positions, *keys; // or null
  int64_t numKeys;

  QueryRow row(int64_t r) const;
};

/// Keys of the table rise, so that a row sees one run of them.
QueryRow Tables::row(int64_t r) const {
  int64_t query = positions ? positions[r] : r;
  int64_t first = documents ? std::max(documents[r], 0) : 0;
  if (shape.window > 0)
    first = std::max(first, query - shape.window + 1);
  int64_t last = shape.causal ? query : shape.totalKeys - 1;
  if (query < 0)
    return {};
  if (!keys)
    return {query, first, std::min(last + 1, numKeys)};
  return {query, std::lower_bound(keys, keys + numKeys, first) - keys,
          std::upper_bound(keys, keys + numKeys, last) - keys};
}

} // namespace

int64_t AttentionShape::countKeys(std::byte *arena) const {
  const int32_t *table = integersAt(keyPositions, arena, 0);
  if (!table)
    return sequence;
  return std::partition_point(table, table + sequence,
                              [](int32_t key) { return key >= 0; }) -
         table;
}

QueryBlock AttentionShape::queryBlock(std::byte *arena, int64_t sample,
                                      int64_t index, QueryRow *rowsOut) const {
  Tables tables{*this, integersAt(documents, arena, sample * rows),
                integersAt(positions, arena, 0),
                integersAt(keyPositions, arena, 0), countKeys(arena)};
  QueryBlock block{.sample = sample,
                   .first = index * queries.block,
                   .rows = queries.lengthAt(index),
                   .queries = rowsOut,
                   .numKeys = tables.numKeys,
                   .keyBlocks = {}};
  int64_t first = sequence, end = 0;
  for (int64_t i = 0; i < block.rows; ++i) {
    QueryRow row = rowsOut[i] = tables.row(block.first + i);
    if (row.first >= row.end)
      continue;
    first = std::min(first, row.first);
    end = std::max(end, row.end);
  }
  block.keyBlocks = {first / keys.block, ceilDiv(end, keys.block)};
  return block;
}

bool AttentionShape::sees(const QueryBlock &block, int64_t keyBlock) const {
  int64_t begin = keyBlock * keys.block, end = begin + keys.block;
  if (keyBlock < block.keyBlocks.first || keyBlock >= block.keyBlocks.end)
    return false;
  return std::any_of(
      block.queries, block.queries + block.rows, [&](const QueryRow &row) {
        return std::max(row.first, begin) < std::min(row.end, end);
      });
}

ScoreBlock AttentionShape::scoreBlock(std::byte *arena, int64_t head,
                                      const QueryBlock &queryBlock,
                                      int64_t keyBlock,
                                      int32_t *keyNumbers) const {
  ScoreBlock block;
  block.rows = queryBlock.rows;
  block.columns = keys.lengthAt(keyBlock);
  block.ld = keys.block;
  block.scale = scale;
  block.cap = cap;
  block.queries = queryBlock.queries;
  block.firstKey = keyBlock * keys.block;
  const int32_t *state =
      hasDropout ? reinterpret_cast<const int32_t *>(random.in(arena))
                 : nullptr;
  if (!state || state[2] < 0) // an evaluation keeps all
    return block;
  fillKeys(arena, block, keyNumbers);
  BlockDropout &dropout = block.dropout;
  dropout.active = true;
  dropout.random = {static_cast<uint32_t>(state[0]), stream,
                    static_cast<uint32_t>(state[1])};
  dropout.threshold = threshold;
  dropout.keepScale = keepScale;
  uint64_t globalSample = static_cast<uint32_t>(state[2]) + queryBlock.sample;
  uint64_t globalHead = static_cast<uint64_t>(head);
  if (firstHead)
    globalHead += *reinterpret_cast<const uint32_t *>(firstHead->in(arena));
  dropout.queryStride = static_cast<uint64_t>(totalKeys);
  dropout.firstIndex = (globalSample * globalHeads + globalHead) *
                       dropout.queryStride * dropout.queryStride;
  dropout.keys = keyNumbers;
  return block;
}

/// Padding has any number: its probabilities are zero.
void AttentionShape::fillKeys(std::byte *arena, const ScoreBlock &block,
                              int32_t *to) const {
  const int32_t *table = integersAt(keyPositions, arena, block.firstKey);
  for (int64_t c = 0; c < keys.block; ++c)
    to[c] = table && c < block.columns
                ? table[c]
                : static_cast<int32_t>(block.firstKey + c);
}

const std::byte *AttentionShape::queryRows(std::byte *arena,
                                           const HeadTensor &of,
                                           const QueryBlock &queries,
                                           int64_t head,
                                           std::byte *scratch) const {
  const std::byte *from = of.at(arena, queries.sample, queries.first, head);
  if (!productsInF32())
    return from;
  const AttentionKernels &kernels = attentionKernels();
  (dtype == DType::bf16 ? kernels.widenBf16 : kernels.widenF32)(
      from, of.ld(), queries.rows, d, reinterpret_cast<float *>(scratch),
      paddedD());
  return scratch;
}

const std::byte *AttentionShape::keyRows(std::byte *arena, const HeadTensor &of,
                                         const QueryBlock &queries,
                                         int64_t kvHead, int64_t keyBlock,
                                         std::byte *scratch) const {
  int64_t first = keyBlock * keys.block;
  int64_t width = paddedD() * bytesOf(product);
  const std::byte *from = of.at(arena, queries.sample, first, kvHead);
  if (!copiesKeys())
    return from;
  int64_t there = std::min(queries.numKeys - first, keys.block);
  const AttentionKernels &kernels = attentionKernels();
  if (productsInF32())
    (dtype == DType::bf16 ? kernels.widenBf16 : kernels.widenF32)(
        from, of.ld(), there, d, reinterpret_cast<float *>(scratch), paddedD());
  else
    for (int64_t row = 0; row < there; ++row)
      std::memcpy(scratch + row * width, from + row * of.ld() * bytes(),
                  d * bytes());
  std::memset(scratch + there * width, 0, (keys.block - there) * width);
  return scratch;
}

FetchAhead AttentionShape::keysAhead(std::byte *arena, const HeadTensor &of,
                                     int64_t sample, int64_t kvHead,
                                     int64_t keyBlock, int64_t turns) const {
  int64_t size = of.tensor.bytes();
  return {.from = of.at(arena, sample, keyBlock * keys.block, kvHead),
          .ld = of.ld() * size,
          .rows = keys.lengthAt(keyBlock),
          .end = d * size,
          .step = turns * fetchedLine};
}

/// Columns of padding have anything: nobody looks at their scores.
const std::byte *AttentionShape::keyColumns(std::byte *arena,
                                            const HeadTensor &of,
                                            const QueryBlock &queries,
                                            int64_t kvHead, int64_t keyBlock,
                                            std::byte *scratch) const {
  if (!productsInF32())
    return keyRows(arena, of, queries, kvHead, keyBlock, scratch);
  int64_t first = keyBlock * keys.block;
  int64_t there = std::min(queries.numKeys - first, keys.block);
  const AttentionKernels &kernels = attentionKernels();
  (dtype == DType::bf16 ? kernels.transposeBf16 : kernels.transposeF32)(
      of.at(arena, queries.sample, first, kvHead), of.ld(), there, d,
      reinterpret_cast<float *>(scratch), keys.block);
  return scratch;
}

} // namespace meshwork::runtime::cpu
