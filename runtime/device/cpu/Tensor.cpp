#include "runtime/device/cpu/Tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/Spaces.h"

namespace meshwork::runtime::cpu {

const char *nameOf(DType type) {
  switch (type) {
  case DType::f32:
    return "f32";
  case DType::bf16:
    return "bf16";
  case DType::i32:
    return "i32";
  case DType::e4m3:
    return "e4m3";
  case DType::e5m2:
    return "e5m2";
  case DType::i8:
    return "i8";
  }
  return "unknown type";
}

std::string Tensor::describe() const {
  return absl::StrCat(nameOf(dtype), "[", absl::StrJoin(shape, ", "),
                      "] with strides [", absl::StrJoin(strides, ", "), "]");
}

absl::StatusOr<Tensor> tensorOf(const ProgramOnRank &onRank, uint32_t index,
                                const char *role) {
  const plan::Program &program = onRank.program;
  if (!program.views() || index >= program.views()->size())
    return absl::InvalidArgumentError(
        absl::StrCat(role, ": view ", index, " does not exist"));
  const plan::View &view = *program.views()->Get(index);
  if (!program.buffers() || view.buffer() >= program.buffers()->size())
    return absl::InvalidArgumentError(
        absl::StrCat(role, ": view ", index, " lies in buffer ", view.buffer(),
                     ", which does not exist"));
  Tensor tensor;
  tensor.dtype = view.dtype();
  tensor.offset =
      plan::placeOf(program, *program.buffers()->Get(view.buffer())) +
      view.offset();
  if (!onRank.shifts.empty())
    tensor.offset += onRank.shifts[index];
  if (view.shape())
    tensor.shape.assign(view.shape()->begin(), view.shape()->end());
  if (view.strides())
    tensor.strides.assign(view.strides()->begin(), view.strides()->end());
  if (tensor.shape.size() != tensor.strides.size())
    return absl::InvalidArgumentError(
        absl::StrCat(role, " has ", tensor.shape.size(), " dims but ",
                     tensor.strides.size(), " strides"));
  for (int64_t size : tensor.shape)
    if (size <= 0)
      return absl::InvalidArgumentError(absl::StrCat(
          role, " is ", tensor.describe(), ", expected positive sizes"));
  if (tensor.offset % tensor.bytes() != 0)
    return absl::InvalidArgumentError(
        absl::StrCat(role, " starts at byte ", tensor.offset,
                     ", expected a multiple of ", tensor.bytes()));
  return tensor;
}

absl::StatusOr<Run> collapse(const Tensor &tensor, int64_t first, int64_t last,
                             const char *role) {
  Run run;
  // From the innermost dim out; dims of size one place no element.
  for (int64_t dim = last - 1; dim >= first; --dim) {
    if (tensor.shape[dim] == 1)
      continue;
    if (run.count == 1)
      run.stride = tensor.strides[dim];
    else if (tensor.strides[dim] != run.count * run.stride)
      return absl::UnimplementedError(absl::StrCat(
          role, " is ", tensor.describe(), ", expected dims ", first, " to ",
          last - 1, " to follow each other without gaps"));
    run.count *= tensor.shape[dim];
  }
  return run;
}

absl::StatusOr<int64_t> denseCount(const Tensor &tensor, const char *role) {
  absl::StatusOr<Run> run = collapse(tensor, 0, tensor.rank(), role);
  if (!run.ok())
    return run.status();
  if (run->count > 1 && run->stride != 1)
    return absl::UnimplementedError(absl::StrCat(
        role, " is ", tensor.describe(), ", expected dense elements"));
  return run->count;
}

absl::Status expectRank(const Tensor &tensor, int64_t rank, const char *role) {
  if (tensor.rank() == rank)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      role, " is ", tensor.describe(), ", expected ", rank, " dims"));
}

absl::Status expectType(const Tensor &tensor, DType type, const char *role) {
  if (tensor.dtype == type)
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(role, " is ", tensor.describe(),
                                               ", expected ", nameOf(type)));
}

absl::Status expectShape(const Tensor &tensor,
                         const std::vector<int64_t> &shape, const char *role) {
  if (tensor.shape == shape)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(role, " is ", tensor.describe(), ", expected shape [",
                   absl::StrJoin(shape, ", "), "]"));
}

} // namespace meshwork::runtime::cpu
