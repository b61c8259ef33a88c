// Parameters: each part holds its block of the global tensor.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Shards.h"
#include <algorithm>
#include <cmath>

namespace meshwork::plan {
namespace {
/// Indices of blocks must not overflow, whatever the mesh adds to them.
constexpr uint64_t maxElements = uint64_t{1} << 56;

absl::Status checkInit(const Parameter &parameter) {
  float a = parameter.init_a(), b = parameter.init_b();
  if (parameter.init() > InitKind::MAX)
    return bad("unknown init ", static_cast<int>(parameter.init()));
  if (!std::isfinite(a) || !std::isfinite(b))
    return bad("its init has the numbers ", a, " and ", b);
  if (parameter.init() == InitKind::normal && b < 0)
    return bad("its init has the standard deviation ", b);
  if (parameter.init() == InitKind::uniform && b < a)
    return bad("its init has the empty range ", a, " to ", b);
  return absl::OkStatus();
}

absl::Status countElements(const flatbuffers::Vector<int64_t> *shape,
                           const char *role, uint64_t &elements) {
  elements = 1;
  if (!isAligned(shape))
    return bad(role, " is not aligned to 8 bytes");
  if (orEmpty(shape).size() > 8)
    return bad(role, " has ", shape->size(), " dims, expected at most 8");
  for (int64_t size : orEmpty(shape))
    if (size < 1 || !checkedMul(elements, size, elements) ||
        elements > maxElements)
      return bad(role, " has the size ", size, ", or more elements than 2^56");
  return absl::OkStatus();
}

/// Each dim's axes, and none of them twice.
absl::Status checkDims(const ProgramCheck &check, const Parameter &parameter,
                       const Sharded &part, const char *role) {
  uint32_t dims = part.is_number() ? 0 : orEmpty(parameter.shape()).size(),
           seen = 0;
  if (!part.dims() || part.dims()->size() == 0)
    return absl::OkStatus();
  if (part.dims()->size() != dims)
    return bad(role, " names axes for ", part.dims()->size(),
               " dims, the shape has ", dims);
  for (const AxisList *list : *part.dims()) {
    absl::Status status = checkSplit(check.plan, list->axes(), list->layouts());
    if (!status.ok())
      return bad(role, ": ", status.message());
    for (uint32_t axis : orEmpty(list->axes())) {
      if (seen >> axis & 1)
        return bad(role, " is split over axis ", axis, " in two dims");
      seen |= 1u << axis;
    }
  }
  return absl::OkStatus();
}

/// The view of `part` has the size of its block.
absl::Status checkPart(const ProgramCheck &check, const Parameter &parameter,
                       const Sharded *part, const char *role, bool isF32,
                       bool persistent) {
  auto view = findView(check, viewOf(part), role);
  MESHWORK_RETURN_IF_ERROR(view.status());
  MESHWORK_RETURN_IF_ERROR(checkDims(check, parameter, *part, role));
  std::vector<int64_t> shape =
      partOf(check.plan, parameter.shape(), *part, [](uint32_t) {
        return 0u;
      }).shape;
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  bool fits = (*view)->shape.size() == shape.size()
                  ? (*view)->shape == absl::MakeSpan(shape)
                  : (*view)->contiguous && (*view)->elements == elements;
  if (!fits)
    return bad(role, " is ", describe(**view), ", expected its block [",
               absl::StrJoin(shape, ","), "], or in other dims ", elements,
               " contiguous elements");
  if (!isWideFloat((*view)->dtype) || (isF32 && (*view)->dtype != DType::f32))
    return bad(role, " is ", describe(**view), ", expected f32",
               isF32 ? "" : " or bf16");
  if (persistent && !check.bufferOf(**view).persistent())
    return bad(role, ": buffer ", quote(check.bufferOf(**view).name()),
               " does not persist between steps");
  return absl::OkStatus();
}

absl::Status checkState(const ProgramCheck &check, const Parameter &parameter,
                        const State &state) {
  using Role = StateRole;
  if (!isStateName(state.name()))
    return bad("a state is called ", quote(state.name()),
               ", expected at most 32 lower-case letters, digits and _, a "
               "letter first");
  std::string name = state.name()->str();
  if (state.role() > Role::MAX)
    return bad(name, " has the unknown role ", static_cast<int>(state.role()));
  bool isOptimizer = state.role() == Role::optimizer;
  if (isOptimizer ? !std::isfinite(state.initial()) : state.initial() != 0)
    return bad(name, " begins with ", state.initial(), ", expected ",
               isOptimizer ? "a finite number"
                           : "0: its role says what it begins with");
  if (state.part() && state.part()->is_number() && !isOptimizer)
    return bad(name, " is a number, which only an optimizer's state may be");
  return checkPart(check, parameter, state.part(), name.c_str(),
                   /*isF32=*/state.role() == Role::master,
                   /*persistent=*/state.role() != Role::gradient);
}

absl::Status checkStates(const ProgramCheck &check,
                         const Parameter &parameter) {
  using Role = StateRole;
  constexpr uint32_t most = 16; // a list may be that of many parameters
  const auto &states = orEmpty(parameter.states());
  if (states.size() > most)
    return bad("it has ", states.size(), " states, expected at most ", most);
  absl::flat_hash_set<std::string> names;
  uint32_t counts[4] = {};
  for (const State *state : states) {
    MESHWORK_RETURN_IF_ERROR(checkState(check, parameter, *state));
    ++counts[static_cast<int>(state->role())];
    if (!names.insert(state->name()->str()).second)
      return bad("state ", quote(state->name()), " is there twice");
  }
  if (counts[static_cast<int>(Role::weight)] == 0)
    return bad("weight is absent");
  for (Role role : {Role::weight, Role::master, Role::gradient})
    if (counts[static_cast<int>(role)] > 1)
      return bad("it has ", counts[static_cast<int>(role)],
                 " states of the role ", EnumNameStateRole(role),
                 ", expected one");
  bool weightIsF32 = check.views[weightView(parameter)].dtype == DType::f32;
  if (counts[static_cast<int>(Role::master)] == 0 && !weightIsF32)
    return bad("master is absent");
  return absl::OkStatus();
}

absl::Status checkParameter(const ProgramCheck &check,
                            const Parameter &parameter) {
  uint64_t inFile = 0, elements = 0;
  MESHWORK_RETURN_IF_ERROR(
      countElements(parameter.file_shape(), "file_shape", inFile));
  MESHWORK_RETURN_IF_ERROR(countElements(parameter.shape(), "shape", elements));
  if (inFile != elements)
    return bad("its shape has ", elements,
               " elements, the product of file_shape is ", inFile);
  MESHWORK_RETURN_IF_ERROR(checkFiles(parameter));
  MESHWORK_RETURN_IF_ERROR(checkInit(parameter));
  return checkStates(check, parameter);
}
} // namespace

absl::Status checkParameters(const ProgramCheck &check) {
  absl::flat_hash_set<std::string> names;
  for (const Parameter *parameter : orEmpty(check.program.parameters())) {
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

} // namespace meshwork::plan
