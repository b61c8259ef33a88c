#include "runtime/device/cuda/BlasLtEpilogue.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/BlasLtApi.h"

namespace meshwork::runtime::cuda {

absl::Status expectShape(const DeviceView &view,
                         const std::vector<int64_t> &shape, const char *role) {
  if (view.shape == shape && view.strides.size() == shape.size())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(role, " is ", view.describe(), ", expected shape [",
                   absl::StrJoin(shape, ", "), "]"));
}

absl::Status checkBias(const DeviceView &bias, int64_t n, bool denseRows) {
  int64_t count = 1, expected = 1;
  bool dense = bias.shape.size() == bias.strides.size();
  for (size_t i = bias.shape.size(); dense && i-- > 0;) {
    dense = bias.shape[i] == 1 || bias.strides[i] == expected;
    expected = count *= bias.shape[i];
  }
  if (!dense || count != n)
    return absl::InvalidArgumentError(absl::StrCat(
        "bias is ", bias.describe(), ", expected ", n, " dense elements"));
  if (denseRows)
    return absl::OkStatus();
  return absl::UnimplementedError(
      "dst has dense columns and a bias, expected dense rows: cuBLASLt adds a "
      "bias along the dense dim only");
}

namespace {

/// What cuBLASLt's header says of the input of a GELU: its columns (rows here)
/// lie a multiple of 8 elements apart. It also asks for 16 bytes at a time.
absl::Status checkAux(const DeviceView &aux, const DeviceView &dst) {
  constexpr int64_t unit = 8;
  constexpr DevicePtr aligned = 16;
  MESHWORK_RETURN_IF_ERROR(expectShape(aux, dst.shape, "aux"));
  if (aux.dtype != dst.dtype)
    return absl::UnimplementedError(
        absl::StrCat("aux is ", aux.describe(), ", expected the type of dst, ",
                     plan::EnumNameDType(dst.dtype)));
  if (aux.strides[2] == 1 && aux.strides[1] >= aux.shape[2] &&
      aux.strides[1] % unit == 0 && aux.address % aligned == 0)
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("aux is ", aux.describe(), " at 0x", absl::Hex(aux.address),
                   ", expected dense rows a multiple of ", unit,
                   " elements apart, from a "
                   "multiple of ",
                   aligned, " bytes on"));
}

/// `count` sums, of dst's type, without gaps.
absl::Status checkSums(const DeviceView &sums, int64_t count,
                       const DeviceView &dst) {
  if (sums.dtype == dst.dtype && sums.shape == std::vector<int64_t>{count} &&
      (sums.strides[0] == 1 || count == 1))
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("aux is ", sums.describe(), ", expected ", count,
                   " dense sums of dst's type, ",
                   plan::EnumNameDType(dst.dtype), ": cuBLASLt has no other"));
}

} // namespace

bool isGelu(plan::Epilogue epilogue) {
  return epilogue == plan::Epilogue::gelu ||
         epilogue == plan::Epilogue::gelu_grad;
}

absl::Status checkEpilogue(const MatmulRequest &request, bool denseRows) {
  if (request.epilogue == plan::Epilogue::none)
    return absl::OkStatus();
  const DeviceView &dst = request.dst;
  if (plan::isFloat8(request.lhs.dtype) || dst.shape[0] != 1)
    return absl::UnimplementedError(
        absl::StrCat("lhs is ", request.lhs.describe(),
                     " beside an epilogue, expected one "
                     "product of f32 or bf16"));
  if (isGelu(request.epilogue) && !denseRows)
    return absl::UnimplementedError(absl::StrCat(
        "dst is ", dst.describe(), ", expected dense rows beside a GELU"));
  if (isGelu(request.epilogue))
    return request.aux ? checkAux(*request.aux, dst) : absl::OkStatus();
  bool ofLhs = request.epilogue == plan::Epilogue::sum_lhs;
  return checkSums(*request.aux, dst.shape[ofLhs ? 1 : 2], dst);
}

// Where dst has dense rows the library's A is the plan's rhs.
uint32_t libraryEpilogueOf(const MatmulRequest &request, bool denseRows) {
  bool hasBias = request.bias.has_value();
  switch (request.epilogue) {
  case plan::Epilogue::none:
    return hasBias ? blas::epilogue::bias : blas::epilogue::none;
  case plan::Epilogue::gelu:
    if (request.aux)
      return hasBias ? blas::epilogue::geluAuxBias : blas::epilogue::geluAux;
    return hasBias ? blas::epilogue::geluBias : blas::epilogue::gelu;
  case plan::Epilogue::gelu_grad:
    return blas::epilogue::geluGradient;
  case plan::Epilogue::sum_lhs:
    return denseRows ? blas::epilogue::sumB : blas::epilogue::sumA;
  case plan::Epilogue::sum_rhs:
    return denseRows ? blas::epilogue::sumA : blas::epilogue::sumB;
  }
  return blas::epilogue::none;
}

const char *epilogueNameOf(uint32_t epilogue) {
  switch (epilogue) {
  case blas::epilogue::gelu:
    return "GELU";
  case blas::epilogue::geluBias:
    return "GELU_BIAS";
  case blas::epilogue::geluAux:
    return "GELU_AUX";
  case blas::epilogue::geluAuxBias:
    return "GELU_AUX_BIAS";
  case blas::epilogue::geluGradient:
    return "DGELU";
  case blas::epilogue::sumA:
    return "BGRADA";
  case blas::epilogue::sumB:
    return "BGRADB";
  }
  return "BIAS";
}

} // namespace meshwork::runtime::cuda
