// Inputs, results and parameters: what the runtime itself reads and writes.
#include "absl/container/flat_hash_set.h"
#include "runtime/core/PlanCheckInternal.h"
#include <cmath>

namespace meshwork::runtime {
namespace {

absl::Status expectScalar(const ViewInfo &view, const char *role) {
  if (view.dtype != plan::DType::f32 || view.elements != 1)
    return bad(role, " is ", describe(view), ", expected one f32");
  return absl::OkStatus();
}

/// The buffer holds what the runtime wrote from instruction `from` on.
absl::Status expectLiveFrom(const ProgramCheck &check, const ViewInfo &view,
                            const char *role, uint64_t from) {
  const plan::Buffer &buffer = check.bufferOf(view);
  if (buffer.persistent() || buffer.first_use() <= from)
    return absl::OkStatus();
  return bad(role, ": buffer ", quote(buffer.name()),
             " is written before instruction ", from, " but lives only from ",
             buffer.first_use());
}

absl::Status checkInput(const ProgramCheck &check, const plan::Input &input,
                        uint32_t &seen) {
  if (input.kind() > plan::InputKind::MAX)
    return bad("unknown kind ", static_cast<int>(input.kind()));
  const char *name = plan::EnumNameInputKind(input.kind());
  uint32_t bit = 1u << static_cast<int>(input.kind());
  if (seen & bit)
    return bad(name, " is there twice");
  seen |= bit;
  auto view = findView(check, input.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  if (!(*view)->contiguous)
    return bad(name, " is not contiguous");
  uint64_t from = check.microbatch().begin;
  switch (input.kind()) {
  case plan::InputKind::tokens:
  case plan::InputKind::targets:
    MESHWORK_RETURN_IF_ERROR(
        expectView(**view, name, plan::DType::i32,
                   {check.plan.micro_batch(), check.plan.sequence()}));
    break;
  case plan::InputKind::random:
    MESHWORK_RETURN_IF_ERROR(expectView(**view, name, plan::DType::i32, {3}));
    break;
  default:
    MESHWORK_RETURN_IF_ERROR(expectScalar(**view, name));
    from = check.step().begin;
  }
  return expectLiveFrom(check, **view, name, from);
}

absl::Status checkResult(const ProgramCheck &check, const plan::Result &result,
                         uint32_t &seen) {
  if (result.kind() > plan::ResultKind::MAX)
    return bad("unknown kind ", static_cast<int>(result.kind()));
  const char *name = plan::EnumNameResultKind(result.kind());
  uint32_t bit = 1u << static_cast<int>(result.kind());
  if (seen & bit)
    return bad(name, " is there twice");
  seen |= bit;
  auto view = findView(check, result.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  MESHWORK_RETURN_IF_ERROR(expectScalar(**view, name));
  const plan::Buffer &buffer = check.bufferOf(**view);
  if (!buffer.persistent() &&
      uint64_t{buffer.last_use()} + 1 < check.update().end())
    return bad(name, ": buffer ", quote(buffer.name()),
               " is read after the last instruction but lives only to ",
               buffer.last_use());
  return absl::OkStatus();
}

absl::Status checkInit(const plan::Parameter &parameter) {
  float a = parameter.init_a(), b = parameter.init_b();
  if (parameter.init() > plan::InitKind::MAX)
    return bad("unknown init ", static_cast<int>(parameter.init()));
  if (!std::isfinite(a) || !std::isfinite(b))
    return bad("its init has the numbers ", a, " and ", b);
  if (parameter.init() == plan::InitKind::normal && b < 0)
    return bad("its init has the standard deviation ", b);
  if (parameter.init() == plan::InitKind::uniform && b < a)
    return bad("its init has the empty range ", a, " to ", b);
  return absl::OkStatus();
}

/// A view that `role` keeps between steps.
absl::Status checkHeld(const ProgramCheck &check, uint32_t index,
                       const char *role, uint64_t elements, bool isF32,
                       bool persistent) {
  auto view = findView(check, index, role);
  MESHWORK_RETURN_IF_ERROR(view.status());
  if (static_cast<uint64_t>((*view)->elements) != elements ||
      !(*view)->contiguous)
    return bad(role, " is ", describe(**view), ", expected ", elements,
               " contiguous elements, the product of file_shape");
  if ((*view)->dtype == plan::DType::i32 ||
      (isF32 && (*view)->dtype != plan::DType::f32))
    return bad(role, " is ", describe(**view), ", expected f32",
               isF32 ? "" : " or bf16");
  if (persistent && !check.bufferOf(**view).persistent())
    return bad(role, ": buffer ", quote(check.bufferOf(**view).name()),
               " does not persist between steps");
  return absl::OkStatus();
}

absl::Status checkParameter(const ProgramCheck &check,
                            const plan::Parameter &parameter) {
  uint64_t elements = 1;
  if (!isAligned(parameter.file_shape()))
    return bad("file_shape is not aligned to 8 bytes");
  if (parameter.file_shape())
    for (int64_t size : *parameter.file_shape())
      if (size < 1 || !checkedMul(elements, size, elements))
        return bad("file_shape has the size ", size,
                   ", or more elements than fit 64 bits");
  MESHWORK_RETURN_IF_ERROR(checkInit(parameter));
  MESHWORK_RETURN_IF_ERROR(
      checkHeld(check, parameter.weight(), "weight", elements, false, true));
  MESHWORK_RETURN_IF_ERROR(
      checkHeld(check, parameter.master(), "master", elements, true, true));
  struct Optional {
    uint32_t view;
    const char *role;
    bool isF32, persistent;
  };
  for (const Optional &optional :
       {Optional{parameter.first_moment(), "first_moment", true, true},
        Optional{parameter.second_moment(), "second_moment", true, true},
        Optional{parameter.gradient(), "gradient", false, false}})
    if (optional.view != plan::noView)
      MESHWORK_RETURN_IF_ERROR(checkHeld(check, optional.view, optional.role,
                                         elements, optional.isF32,
                                         optional.persistent));
  return absl::OkStatus();
}

absl::Status checkParameters(const ProgramCheck &check) {
  absl::flat_hash_set<std::string> names;
  for (const plan::Parameter *parameter : orEmpty(check.program.parameters())) {
    const flatbuffers::String *name = parameter->name();
    if (!name || name->size() == 0 || name->size() > 1024)
      return bad("a parameter has a name of ", name ? name->size() : 0,
                 " bytes, expected 1 to 1024");
    if (!names.insert(name->str()).second)
      return bad("parameter ", quote(name), " is there twice");
    if (absl::Status status = checkParameter(check, *parameter); !status.ok())
      return bad("parameter ", quote(name), ": ", status.message());
  }
  return absl::OkStatus();
}
} // namespace

absl::Status checkState(const ProgramCheck &check) {
  uint32_t seen = 0;
  for (const plan::Input *input : orEmpty(check.program.inputs()))
    if (absl::Status status = checkInput(check, *input, seen); !status.ok())
      return bad("inputs: ", status.message());
  seen = 0;
  for (const plan::Result *result : orEmpty(check.program.results()))
    if (absl::Status status = checkResult(check, *result, seen); !status.ok())
      return bad("results: ", status.message());
  if (!(seen & 1u << static_cast<int>(plan::ResultKind::loss)))
    return bad("results: there is no loss");
  return checkParameters(check);
}

} // namespace meshwork::runtime
