#include "runtime/device/cpu/AttentionShape.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Dnnl.h"

namespace meshwork::runtime::cpu {
namespace {

// Chosen by measurement (bench_cpu): larger blocks feed the products no better
// and waste more on a causal diagonal.
constexpr int64_t queryBlockRows = 128;
constexpr int64_t keyBlockColumns = 128;
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

absl::Status checkPart(const plan::AttentionPart &part) {
  if (!std::isfinite(part.scale()) || part.scale() == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "scale is ", part.scale(), ", expected a finite number but zero"));
  if (!std::isfinite(part.cap()) || part.cap() < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "cap is ", part.cap(), ", expected a finite number from 0 (none)"));
  if (part.window() < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "window is ", part.window(), ", expected 0 (unlimited) or more"));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<AttentionShape>
attentionShapeOf(const ProgramOnRank &program, uint32_t q, uint32_t k,
                 const plan::AttentionPart &part) {
  MESHWORK_RETURN_IF_ERROR(checkPart(part));
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
  shape.product = dnnl::hasFastBf16() ? shape.dtype : DType::f32;
  if (!plan::isWideFloat(shape.dtype))
    return absl::UnimplementedError(
        absl::StrCat("q is ", query.describe(), ", expected f32 or bf16"));
  if (shape.heads % shape.kvHeads != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("q has ", shape.heads, " heads and k ", shape.kvHeads,
                     ", expected a multiple"));
  if (shape.rows != shape.sequence && part.positions() == plan::noView)
    return absl::InvalidArgumentError(
        absl::StrCat("q has ", shape.rows, " rows and k ", shape.sequence,
                     ", expected positions, or as many"));
  if (std::max(shape.rows, shape.sequence) > maxSequence)
    return absl::UnimplementedError(
        absl::StrCat("the sequence is ", std::max(shape.rows, shape.sequence),
                     ", expected at most 2^31"));
  if (part.key_positions() != plan::noView &&
      (part.total_keys() < 1 || part.total_keys() > maxSequence))
    return absl::InvalidArgumentError(absl::StrCat(
        "total_keys is ", part.total_keys(), ", expected 1 to 2^31"));
  shape.scale = part.scale();
  shape.cap = part.cap();
  shape.causal = part.causal();
  shape.totalKeys =
      part.key_positions() == plan::noView ? shape.sequence : part.total_keys();
  // A window as long as the sequence hides nothing of a causal past.
  shape.window = std::min(part.window(), shape.totalKeys);
  shape.queries = {shape.rows, queryBlockRows};
  shape.keys = {shape.sequence, keyBlockColumns};
  MESHWORK_RETURN_IF_ERROR(readIntegers(program, part.documents(),
                                        {shape.batch, shape.rows}, "documents",
                                        shape.documents));
  MESHWORK_RETURN_IF_ERROR(readIntegers(program, part.positions(), {shape.rows},
                                        "positions", shape.positions));
  MESHWORK_RETURN_IF_ERROR(readIntegers(program, part.key_positions(),
                                        {shape.sequence}, "key_positions",
                                        shape.keyPositions));
  MESHWORK_RETURN_IF_ERROR(readDropout(program, part.dropout(), shape));
  return shape;
}

int64_t HeadTensor::ld() const {
  return tensor.shape[1] == 1 ? tensor.shape[3] : tensor.strides[1];
}

static absl::StatusOr<HeadTensor> headTensorOf(const ProgramOnRank &program,
                                               uint32_t view,
                                               const AttentionShape &shape,
                                               int64_t rows, int64_t heads,
                                               const char *name, Role role) {
  HeadTensor operand;
  Tensor &tensor = operand.tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, name));
  if (role == Role::operand || tensor.dtype != DType::f32)
    MESHWORK_RETURN_IF_ERROR(expectType(tensor, shape.dtype, name));
  MESHWORK_RETURN_IF_ERROR(
      expectShape(tensor, {shape.batch, rows, heads, shape.d}, name));
  if ((shape.d > 1 && tensor.strides[3] != 1) || operand.ld() < shape.d)
    return absl::UnimplementedError(
        absl::StrCat(name, " is ", tensor.describe(),
                     ", expected stride 1 in the last dim and at least ",
                     shape.d, " in the second"));
  return operand;
}

absl::StatusOr<HeadTensor> queryTensorOf(const ProgramOnRank &program,
                                         uint32_t view,
                                         const AttentionShape &shape,
                                         const char *name, Role role) {
  return headTensorOf(program, view, shape, shape.rows, shape.heads, name,
                      role);
}

absl::StatusOr<HeadTensor> keyTensorOf(const ProgramOnRank &program,
                                       uint32_t view,
                                       const AttentionShape &shape,
                                       const char *name, Role role) {
  return headTensorOf(program, view, shape, shape.sequence, shape.kvHeads, name,
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
  spec.type = shape.product;
  spec.rhsTransposed = !shape.productsInF32();
  spec.lhsLd = shape.ldOfQueries(left);
  spec.rhsLd = shape.productsInF32() ? shape.keys.block : shape.ldOfKeys(right);
  spec.packRhs = shape.packsRight();
  spec.inCache = true;
  spec.dstLd = shape.keys.block;
  return spec;
}

GemmSpec blockTimesSpec(const AttentionShape &shape, int64_t rightLd,
                        int64_t rows, int64_t columns, bool transposed) {
  GemmSpec spec{.m = transposed ? columns : rows,
                .n = shape.d,
                .k = transposed ? rows : columns};
  spec.type = shape.product;
  spec.lhsTransposed = transposed;
  spec.packRhs = shape.packsRight();
  spec.inCache = true;
  spec.lhsLd = shape.keys.block;
  spec.rhsLd = rightLd;
  spec.dstLd = shape.paddedD();
  spec.accumulate = true;
  return spec;
}

} // namespace meshwork::runtime::cpu
