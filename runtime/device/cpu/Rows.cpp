#include "runtime/device/cpu/Rows.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cpu {

absl::StatusOr<Rows> rowsOf(Tensor tensor, int64_t dims, const char *role) {
  int64_t split = dims < 0 ? tensor.rank() + dims : dims;
  if (split < 0 || split > tensor.rank())
    return absl::InvalidArgumentError(
        absl::StrCat(role, " is ", tensor.describe(), ", expected at least ",
                     dims < 0 ? -dims : dims, " dims"));
  Run outer, inner;
  MESHWORK_ASSIGN_OR_RETURN(outer, collapse(tensor, 0, split, role));
  MESHWORK_ASSIGN_OR_RETURN(inner,
                            collapse(tensor, split, tensor.rank(), role));
  if (inner.count > 1 && inner.stride != 1)
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", tensor.describe(), ", expected dense rows"));
  return Rows{std::move(tensor), outer.count, inner.count, outer.stride};
}

absl::StatusOr<Rows> rowsOf(const ProgramOnRank &program, uint32_t view,
                            DType type, int64_t dims, const char *role) {
  Tensor tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(expectType(tensor, type, role));
  return rowsOf(std::move(tensor), dims, role);
}

absl::StatusOr<Rows> floatRowsOf(const ProgramOnRank &program, uint32_t view,
                                 int64_t dims, const char *role) {
  Tensor tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, role));
  if (!plan::isWideFloat(tensor.dtype))
    return absl::UnimplementedError(absl::StrCat(
        role, " is ", tensor.describe(), ", expected f32 or bf16"));
  return rowsOf(std::move(tensor), dims, role);
}

absl::StatusOr<Numbers> numbersOf(const ProgramOnRank &program, uint32_t view,
                                  const char *role) {
  Numbers numbers;
  MESHWORK_ASSIGN_OR_RETURN(numbers.tensor, tensorOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(expectType(numbers.tensor, DType::i32, role));
  MESHWORK_ASSIGN_OR_RETURN(numbers.count, denseCount(numbers.tensor, role));
  return numbers;
}

absl::Status expectCount(int64_t found, int64_t expected, const char *what) {
  return found == expected
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "there are ", found, " ", what, ", expected ", expected));
}

} // namespace meshwork::runtime::cpu
