#include "runtime/device/cpu/AttentionShape.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::runtime::cpu {
namespace {

// Chosen by measurement (bench_cpu): larger blocks feed the products no better
// and waste more on a causal diagonal.
constexpr int64_t queryBlockRows = 128;
constexpr int64_t keyBlockColumns = 128;
/// Further than any key is from any query of its block.
constexpr int64_t farAway = int64_t{1} << 60;
constexpr int64_t maxSequence = int64_t{1} << 31;

absl::Status readDropout(const ProgramOnRank &program,
                         const plan::Dropout *dropout, AttentionShape &shape) {
  if (!dropout)
    return absl::OkStatus();
  shape.hasDropout = true;
  shape.stream = dropout->stream();
  shape.threshold = dropout->threshold();
  shape.keepScale = dropout->keep_scale();
  MESHWORK_ASSIGN_OR_RETURN(shape.random,
                            tensorOf(program, dropout->random(), "random"));
  MESHWORK_RETURN_IF_ERROR(expectType(shape.random, DType::i32, "random"));
  int64_t count;
  MESHWORK_ASSIGN_OR_RETURN(count, denseCount(shape.random, "random"));
  if (count != 3)
    return absl::InvalidArgumentError(absl::StrCat(
        "random is ", shape.random.describe(), ", expected 3 elements"));
  shape.globalHeads = dropout->heads() == 0 ? shape.heads : dropout->heads();
  if (dropout->first_head() == plan::noView)
    return absl::OkStatus();
  Tensor first;
  MESHWORK_ASSIGN_OR_RETURN(
      first, tensorOf(program, dropout->first_head(), "first_head"));
  MESHWORK_RETURN_IF_ERROR(expectType(first, DType::i32, "first_head"));
  shape.firstHead = std::move(first);
  return absl::OkStatus();
}

/// Dense integers of `dims`.
absl::Status readIntegers(const ProgramOnRank &program, uint32_t view,
                          std::initializer_list<int64_t> dims, const char *role,
                          std::optional<Tensor> &to) {
  if (view == plan::noView)
    return absl::OkStatus();
  Tensor integers;
  MESHWORK_ASSIGN_OR_RETURN(integers, tensorOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(expectType(integers, DType::i32, role));
  MESHWORK_RETURN_IF_ERROR(expectShape(integers, dims, role));
  MESHWORK_RETURN_IF_ERROR(denseCount(integers, role).status());
  to = std::move(integers);
  return absl::OkStatus();
}

absl::Status checkAttributes(const AttentionAttributes &attributes) {
  if (!std::isfinite(attributes.scale) || attributes.scale == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "scale is ", attributes.scale, ", expected a finite number but zero"));
  if (attributes.window < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "window is ", attributes.window, ", expected 0 (unlimited) or more"));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<AttentionShape>
attentionShapeOf(const ProgramOnRank &program, uint32_t q, uint32_t k,
                 const AttentionAttributes &attributes) {
  MESHWORK_RETURN_IF_ERROR(checkAttributes(attributes));
  Tensor query, key;
  MESHWORK_ASSIGN_OR_RETURN(query, tensorOf(program, q, "q"));
  MESHWORK_ASSIGN_OR_RETURN(key, tensorOf(program, k, "k"));
  MESHWORK_RETURN_IF_ERROR(expectRank(query, 4, "q"));
  MESHWORK_RETURN_IF_ERROR(expectRank(key, 4, "k"));
  AttentionShape shape;
  shape.batch = query.shape[0];
  shape.rows = query.shape[1];
  shape.sequence = key.shape[1];
  shape.heads = query.shape[2];
  shape.d = query.shape[3];
  shape.kvHeads = key.shape[2];
  shape.dtype = query.dtype;
  if (!plan::isWideFloat(shape.dtype))
    return absl::UnimplementedError(
        absl::StrCat("q is ", query.describe(), ", expected f32 or bf16"));
  if (shape.heads % shape.kvHeads != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("q has ", shape.heads, " heads and k ", shape.kvHeads,
                     ", expected a multiple"));
  if (shape.rows != shape.sequence && attributes.positions == plan::noView)
    return absl::InvalidArgumentError(
        absl::StrCat("q has ", shape.rows, " rows and k ", shape.sequence,
                     ", expected positions, or as many"));
  if (std::max(shape.rows, shape.sequence) > maxSequence)
    return absl::UnimplementedError(
        absl::StrCat("the sequence is ", std::max(shape.rows, shape.sequence),
                     ", expected at most 2^31"));
  shape.scale = attributes.scale;
  shape.causal = attributes.causal;
  // A window as long as the sequence hides nothing of a causal past.
  shape.window = std::min(attributes.window, shape.sequence);
  shape.queries = {shape.rows, queryBlockRows};
  shape.keys = {shape.sequence, keyBlockColumns};
  MESHWORK_RETURN_IF_ERROR(readIntegers(program, attributes.documents,
                                        {shape.batch, shape.rows}, "documents",
                                        shape.documents));
  MESHWORK_RETURN_IF_ERROR(readIntegers(program, attributes.positions,
                                        {shape.rows}, "positions",
                                        shape.positions));
  MESHWORK_RETURN_IF_ERROR(readDropout(program, attributes.dropout, shape));
  return shape;
}

const int32_t *AttentionShape::documentsAt(std::byte *arena, int64_t sample,
                                           int64_t row) const {
  if (!documents)
    return nullptr;
  return reinterpret_cast<const int32_t *>(documents->in(arena)) +
         sample * rows + row;
}

const int32_t *AttentionShape::positionsAt(std::byte *arena,
                                           int64_t row) const {
  if (!positions)
    return nullptr;
  return reinterpret_cast<const int32_t *>(positions->in(arena)) + row;
}

BlockRange AttentionShape::keyBlocksFor(std::byte *arena, int64_t sample,
                                        int64_t queryBlock) const {
  int64_t row = queryBlock * queries.block,
          count = queries.lengthAt(queryBlock);
  int64_t first = row, last = row + count - 1; // queries of the sequence
  const int32_t *begins = documentsAt(arena, sample, row);
  // Positions where documents begin never fall along the sequence, so the first
  // query's is least.
  int64_t document = begins ? *begins : 0;
  if (const int32_t *at = positionsAt(arena, row)) {
    first = farAway;
    last = -1;
    for (int64_t i = 0; i < count; ++i) {
      last = std::max<int64_t>(last, at[i]);
      if (at[i] < 0 || at[i] >= first)
        continue;
      first = at[i];
      document = begins ? begins[i] : 0;
    }
  }
  int64_t firstKey = std::max<int64_t>(
      document, window > 0 ? std::max<int64_t>(0, first - window + 1) : 0);
  int64_t endKey = last < 0 ? 0 : causal ? last + 1 : sequence;
  return {std::max<int64_t>(firstKey, 0) / keys.block,
          ceilDiv(std::min(endKey, sequence), keys.block)};
}

bool AttentionShape::sees(const ScoreBlock &block) const {
  for (int64_t row = 0; row < block.rows; ++row) {
    int64_t query = block.queryOf(row);
    int64_t first = query + block.firstSeen, end = query + block.endSeen;
    if (block.documents)
      first = std::max(first, block.documents[row] - block.firstKey);
    if (query >= 0 &&
        std::max<int64_t>(first, 0) < std::min(end, block.columns))
      return true;
  }
  return false;
}

ScoreBlock AttentionShape::scoreBlock(std::byte *arena, int64_t sample,
                                      int64_t head, int64_t queryBlock,
                                      int64_t keyBlock) const {
  int64_t firstQuery = queryBlock * queries.block;
  int64_t firstKey = keyBlock * keys.block;
  int64_t counted = positions ? 0 : firstQuery; // what rows count from
  int64_t ahead = counted - firstKey;
  ScoreBlock block;
  block.rows = queries.lengthAt(queryBlock);
  block.columns = keys.lengthAt(keyBlock);
  block.ld = keys.block;
  block.scale = scale;
  block.firstSeen = window > 0 ? ahead - window + 1 : -farAway;
  block.endSeen = causal ? ahead + 1 : farAway;
  block.documents = documentsAt(arena, sample, firstQuery);
  block.positions = positionsAt(arena, firstQuery);
  block.firstKey = firstKey;
  if (!hasDropout)
    return block;
  const int32_t *state = reinterpret_cast<const int32_t *>(random.in(arena));
  BlockDropout &dropout = block.dropout;
  dropout.active = true;
  dropout.random = {static_cast<uint32_t>(state[0]), stream,
                    static_cast<uint32_t>(state[1])};
  dropout.threshold = threshold;
  dropout.keepScale = keepScale;
  uint64_t globalSample = static_cast<uint32_t>(state[2]) + sample;
  uint64_t globalHead = static_cast<uint64_t>(head);
  if (firstHead)
    globalHead += *reinterpret_cast<const uint32_t *>(firstHead->in(arena));
  uint64_t row = (globalSample * globalHeads + globalHead) * sequence + counted;
  dropout.firstIndex = row * sequence + firstKey;
  dropout.rowStride = sequence;
  return block;
}

int64_t HeadTensor::ld() const {
  return tensor.shape[1] == 1 ? tensor.shape[3] : tensor.strides[1];
}

static absl::StatusOr<HeadTensor> headTensorOf(const ProgramOnRank &program,
                                               uint32_t view,
                                               const AttentionShape &shape,
                                               int64_t rows, int64_t heads,
                                               const char *role) {
  HeadTensor operand;
  Tensor &tensor = operand.tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(expectType(tensor, shape.dtype, role));
  MESHWORK_RETURN_IF_ERROR(
      expectShape(tensor, {shape.batch, rows, heads, shape.d}, role));
  if ((shape.d > 1 && tensor.strides[3] != 1) || operand.ld() < shape.d)
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", tensor.describe(),
                     ", expected stride 1 in the last dim and at least ",
                     shape.d, " in the second"));
  return operand;
}

absl::StatusOr<HeadTensor> queryTensorOf(const ProgramOnRank &program,
                                         uint32_t view,
                                         const AttentionShape &shape,
                                         const char *role) {
  return headTensorOf(program, view, shape, shape.rows, shape.heads, role);
}

absl::StatusOr<HeadTensor> keyTensorOf(const ProgramOnRank &program,
                                       uint32_t view,
                                       const AttentionShape &shape,
                                       const char *role) {
  return headTensorOf(program, view, shape, shape.sequence, shape.kvHeads,
                      role);
}

absl::StatusOr<RowTensor> rowTensorOf(const ProgramOnRank &program,
                                      uint32_t view,
                                      const AttentionShape &shape) {
  RowTensor rows;
  MESHWORK_ASSIGN_OR_RETURN(rows.tensor, tensorOf(program, view, "lse"));
  MESHWORK_RETURN_IF_ERROR(expectType(rows.tensor, DType::f32, "lse"));
  MESHWORK_RETURN_IF_ERROR(
      expectShape(rows.tensor, {shape.batch, shape.heads, shape.rows}, "lse"));
  if (shape.rows > 1 && rows.tensor.strides[2] != 1)
    return absl::UnimplementedError(
        absl::StrCat("lse is ", rows.tensor.describe(),
                     ", expected stride 1 in the last dim"));
  return rows;
}

GemmSpec scoreSpec(const AttentionShape &shape, const HeadTensor &left,
                   const HeadTensor &right, int64_t rows, int64_t columns) {
  GemmSpec spec{.m = rows, .n = columns, .k = shape.d};
  spec.type = shape.dtype;
  spec.rhsTransposed = true;
  spec.lhsLd = left.ld();
  spec.rhsLd = right.ld();
  spec.dstLd = shape.keys.block;
  return spec;
}

GemmSpec blockTimesSpec(const AttentionShape &shape, const HeadTensor &right,
                        int64_t sumsLd, int64_t rows, int64_t columns,
                        bool transposed) {
  GemmSpec spec{.m = transposed ? columns : rows,
                .n = shape.d,
                .k = transposed ? rows : columns};
  spec.type = shape.dtype;
  spec.lhsTransposed = transposed;
  spec.lhsLd = shape.keys.block;
  spec.rhsLd = right.ld();
  spec.dstLd = sumsLd;
  spec.accumulate = true;
  return spec;
}

} // namespace meshwork::runtime::cpu
