#include "runtime/device/cuda/BlasLtProblem.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/BlasLtApi.h"
#include "runtime/device/cuda/BlasLtEpilogue.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
using plan::DType;

/// The two inner dims of a view as a matrix with dense columns: the view's
/// transpose where the view has dense rows.
struct Stored {
  ColumnMatrix matrix;
  bool isTranspose;
};

absl::StatusOr<Stored> storedOf(const DeviceView &view, const char *role) {
  int64_t rows = view.shape[1], columns = view.shape[2];
  int64_t rowStride = view.strides[1], columnStride = view.strides[2];
  int64_t batchStride = view.shape[0] > 1 ? view.strides[0] : 0;
  // The stride of a dim of size one means nothing.
  bool denseRows = columnStride == 1 || columns == 1;
  bool denseColumns = rowStride == 1 || rows == 1;
  if (denseRows && (rows == 1 || rowStride >= columns))
    return Stored{{view.address, columns, rows, rows == 1 ? columns : rowStride,
                   batchStride},
                  true};
  if (denseColumns && (columns == 1 || columnStride >= rows))
    return Stored{{view.address, rows, columns,
                   columns == 1 ? rows : columnStride, batchStride},
                  false};
  return absl::UnimplementedError(absl::StrCat(
      role, " is ", view.describe(),
      ", expected stride 1 in one of the two inner dims and the other stride "
      "no smaller than that dim"));
}

absl::Status checkShapes(const MatmulRequest &request) {
  const DeviceView &lhs = request.lhs, &dst = request.dst;
  for (const DeviceView *view : {&lhs, &dst})
    if (view->shape.size() != 3 || view->strides.size() != 3 ||
        *std::min_element(view->shape.begin(), view->shape.end()) < 1)
      return absl::InvalidArgumentError(
          absl::StrCat(view == &lhs ? "lhs" : "dst", " is ", view->describe(),
                       ", expected three dims, none of them empty"));
  int64_t batch = dst.shape[0], m = dst.shape[1], n = dst.shape[2];
  int64_t k = lhs.shape[2];
  MESHWORK_RETURN_IF_ERROR(expectShape(lhs, {batch, m, k}, "lhs"));
  bool isShared = !request.rhs.shape.empty() && request.rhs.shape[0] == 1;
  return expectShape(request.rhs, {isShared ? 1 : batch, k, n}, "rhs");
}

/// Of the two inner dims, the step of the one that is not dense.
int64_t strideOf(const DeviceView &view) {
  return view.strides[2] == 1 ? view.strides[1] : view.strides[2];
}

/// cuBLASLt's table of types for f32 sums has these for f32, bf16 and 8 bits.
absl::Status checkTypes(const MatmulRequest &request) {
  DType lhs = request.lhs.dtype, rhs = request.rhs.dtype,
        dst = request.dst.dtype;
  bool narrow = plan::isFloat8(lhs) && plan::isFloat8(rhs) &&
                (lhs == DType::e4m3 || rhs == DType::e4m3);
  bool inputs = narrow || (lhs == rhs && plan::isWideFloat(lhs));
  if (!inputs || (dst != DType::f32 && dst != (narrow ? DType::bf16 : lhs)))
    return absl::UnimplementedError(absl::StrCat(
        "multiplies ", plan::EnumNameDType(lhs), " by ",
        plan::EnumNameDType(rhs), " into ", plan::EnumNameDType(dst),
        ", expected f32 by f32 into f32, or bf16 by bf16 into f32 or bf16, or "
        "e4m3 by e4m3 or e5m2 into f32 or bf16: cuBLASLt has no other kernels "
        "for them"));
  if (request.bias && narrow && dst != DType::bf16)
    return absl::UnimplementedError(
        absl::StrCat("dst is ", plan::EnumNameDType(dst),
                     " and has a bias, expected bf16: "
                     "cuBLASLt adds no bias to other sums of 8-bit products"));
  if (request.bias && request.bias->dtype != dst)
    return absl::UnimplementedError(absl::StrCat(
        "bias is ", request.bias->describe(), ", expected the type of dst, ",
        plan::EnumNameDType(dst), ": cuBLASLt adds no other"));
  if (narrow && (!request.lhsScale || !request.rhsScale))
    return absl::InvalidArgumentError(
        "operands of 8 bits have no scales, expected one each");
  return absl::OkStatus();
}

/// What tensor cores demand of 8-bit operands (cuBLAS documentation, "8-bit
/// Floating Point Data Types (FP8) Usage"): 16 bytes at once of everything, and
/// on sm_90 both operands dense along the sum.
absl::Status checkNarrow(const MatmulRequest &request) {
  constexpr int64_t unit = 16;
  const DeviceView &lhs = request.lhs, &rhs = request.rhs, &dst = request.dst;
  if (!plan::isFloat8(lhs.dtype))
    return absl::OkStatus();
  for (int64_t size : {lhs.shape[1], lhs.shape[2], rhs.shape[2]})
    if (size % unit)
      return absl::UnimplementedError(absl::StrCat(
          "lhs is ", lhs.describe(), " and rhs ", rhs.describe(),
          ", expected multiples of ", unit,
          ": tensor cores multiply 8 bits in no other sizes. Change the "
          "model's "
          "sizes or their sharding, or set precision.matmul to \"compute\""));
  if (lhs.strides[2] != 1 || rhs.strides[1] != 1)
    return absl::UnimplementedError(
        absl::StrCat("lhs is ", lhs.describe(), " and rhs ", rhs.describe(),
                     ", expected both dense along the dim that is summed"));
  for (const DeviceView *view : {&lhs, &rhs, &dst})
    if (view->address % unit ||
        strideOf(*view) * plan::bytesOf(view->dtype) % unit)
      return absl::UnimplementedError(
          absl::StrCat(view->describe(), " is at 0x", absl::Hex(view->address),
                       ", expected all rows at multiples of ", unit, " bytes"));
  return absl::OkStatus();
}

/// As the library demands.
absl::Status checkWorkspace(const MatmulRequest &request) {
  constexpr DevicePtr alignment = 256;
  if (request.workspace % alignment == 0 &&
      (request.workspace || request.workspaceBytes == 0))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the workspace of ", request.workspaceBytes, " bytes is at 0x",
      absl::Hex(request.workspace), ", expected a multiple of ", alignment));
}

uint32_t alignmentOf(DevicePtr address) {
  constexpr DevicePtr most = 256;
  DevicePtr low = address & (~address + 1);
  return static_cast<uint32_t>(low == 0 ? most : std::min(low, most));
}

int typeOf(DType type) {
  switch (type) {
  case DType::bf16:
    return blas::dataType::bf16;
  case DType::e4m3:
    return blas::dataType::e4m3;
  case DType::e5m2:
    return blas::dataType::e5m2;
  case DType::i32:
  case DType::i8:
  case DType::f32:
    break;
  }
  return blas::dataType::f32;
}
} // namespace

std::string DeviceView::describe() const {
  return absl::StrCat(plan::EnumNameDType(dtype), "[",
                      absl::StrJoin(shape, ", "), "] with strides [",
                      absl::StrJoin(strides, ", "), "]");
}

uint32_t ColumnMatrix::alignment() const { return alignmentOf(address); }

uint32_t BlasLtProblem::outputAlignment() const {
  return std::min({d.alignment(), alignmentOf(bias), alignmentOf(aux.address)});
}

bool BlasLtProblem::accumulatesFast() const {
  return aType == blas::dataType::e4m3 && bType == blas::dataType::e4m3;
}

bool BlasLtProblem::asksForEpilogue() const {
  return epilogue != blas::epilogue::none && epilogue != blas::epilogue::bias;
}

const char *BlasLtProblem::epilogueName() const {
  return epilogueNameOf(epilogue);
}

std::string BlasLtProblem::key() const {
  auto text = [](const ColumnMatrix &matrix) {
    return absl::StrCat(matrix.rows, "x", matrix.columns, "/", matrix.ld, "+",
                        matrix.batchStride, "@", matrix.alignment(),
                        matrix.transposed ? "t" : "n");
  };
  return absl::StrCat(
      aType, "*", bType, ">", outputType, " ", batch, " ", text(a), " ",
      text(b), " ", text(d),
      bias ? absl::StrCat(" bias@", alignmentOf(bias), " ") : " ",
      asksForEpilogue() ? absl::StrCat(epilogueNameOf(epilogue), " ") : "",
      aux.address ? absl::StrCat("aux ", text(aux), " ") : "", workspaceBytes,
      multiprocessors ? absl::StrCat(" on ", multiprocessors) : "");
}

absl::StatusOr<BlasLtProblem> problemOf(const MatmulRequest &request) {
  MESHWORK_RETURN_IF_ERROR(checkShapes(request));
  MESHWORK_RETURN_IF_ERROR(checkTypes(request));
  MESHWORK_RETURN_IF_ERROR(checkNarrow(request));
  MESHWORK_RETURN_IF_ERROR(checkWorkspace(request));
  Stored lhs, rhs, dst;
  MESHWORK_ASSIGN_OR_RETURN(lhs, storedOf(request.lhs, "lhs"));
  MESHWORK_ASSIGN_OR_RETURN(rhs, storedOf(request.rhs, "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(dst, storedOf(request.dst, "dst"));
  bool denseRows = dst.isTranspose;
  if (request.bias)
    MESHWORK_RETURN_IF_ERROR(
        checkBias(*request.bias, request.dst.shape[2], denseRows));
  MESHWORK_RETURN_IF_ERROR(checkEpilogue(request, denseRows));
  // The operand as it is stored, or its transpose, is what enters.
  lhs.matrix.transposed = lhs.isTranspose != denseRows;
  rhs.matrix.transposed = rhs.isTranspose != denseRows;
  BlasLtProblem problem;
  problem.a = denseRows ? rhs.matrix : lhs.matrix;
  problem.b = denseRows ? lhs.matrix : rhs.matrix;
  problem.d = dst.matrix;
  problem.aType = typeOf(denseRows ? request.rhs.dtype : request.lhs.dtype);
  problem.bType = typeOf(denseRows ? request.lhs.dtype : request.rhs.dtype);
  problem.aScale = denseRows ? request.rhsScale : request.lhsScale;
  problem.bScale = denseRows ? request.lhsScale : request.rhsScale;
  problem.outputType = typeOf(request.dst.dtype);
  problem.batch = request.dst.shape[0];
  problem.bias = request.bias ? request.bias->address : 0;
  problem.epilogue = libraryEpilogueOf(request, denseRows);
  if (request.aux && isGelu(request.epilogue))
    problem.aux = {request.aux->address, request.aux->shape[2],
                   request.aux->shape[1], request.aux->strides[1]};
  else if (request.aux)
    problem.bias = request.aux->address;
  problem.workspace = request.workspace;
  problem.workspaceBytes = request.workspaceBytes;
  problem.multiprocessors = request.multiprocessors;
  return problem;
}

} // namespace meshwork::runtime::cuda
