// Inputs and results: what the runtime itself writes and reads.
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Shards.h"

namespace meshwork::runtime {
namespace {

absl::Status expectScalar(const ViewInfo &view, const char *role) {
  if (view.dtype != plan::DType::f32 || view.elements != 1)
    return bad(role, " is ", describe(view), ", expected one f32");
  return absl::OkStatus();
}

/// The runtime writes and reads it between lists.
absl::Status expectPersistent(const ProgramCheck &check, const ViewInfo &view,
                              const char *role) {
  const plan::Buffer &buffer = check.bufferOf(view);
  return buffer.persistent()
             ? absl::OkStatus()
             : bad(role, ": buffer ", quote(buffer.name()),
                   " does not persist, expected one that lives to the end");
}

/// Elements of a rank's part.
int64_t storedSize(const ProgramCheck &check, const plan::Input &input,
                   int64_t size) {
  return layout::storedSize(
      size, cutsOf(check.plan, input, [](uint32_t) { return 0u; }));
}

/// What is written once, of the rank's part of a dim.
absl::Status checkPartOfDim(const ProgramCheck &check, const plan::Input &input,
                            const char *name) {
  auto view = findView(check, input.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  if (absl::Status status =
          checkSplit(check.plan, input.axes(), input.layouts());
      !status.ok())
    return bad(name, ": ", status.message());
  if (input.size() < 1)
    return bad(name, " has the size ", input.size(),
               ", expected a positive number");
  bool isTable = input.kind() == plan::InputKind::positions;
  if (uint64_t ranks = groupSize(check.plan, input.axes());
      input.hop() >= ranks || (input.hop() != 0 && !isTable))
    return bad(name, " has the hop ", input.hop(), ", expected ",
               isTable ? absl::StrCat("less than the ", ranks, " ranks")
                       : "none");
  if (!isTable && orEmpty(input.layouts()).size() != 0)
    return bad(name, " is of parts with layouts, expected blocks; other parts "
                     "have positions");
  if (isTable)
    MESHWORK_RETURN_IF_ERROR(
        expectView(**view, name, plan::DType::i32,
                   {storedSize(check, input, input.size())}));
  else if ((*view)->dtype != plan::DType::i32 || (*view)->elements != 1)
    return bad(name, " is ", describe(**view), ", expected one i32");
  if (!(*view)->contiguous)
    return bad(name, " is not contiguous");
  // Ranks past the end begin the furthest out.
  int64_t last =
      layout::ranges(input.size(),
                     cutsOf(check.plan, input,
                            [&](uint32_t axis) {
                              return check.plan.mesh()->Get(axis)->size() - 1;
                            }))[0]
          .begin;
  if (last > INT32_MAX)
    return bad(name, " reaches ", last, ", expected at most 2^31 - 1");
  return expectPersistent(check, **view, name);
}

absl::Status checkInput(const ProgramCheck &check, const plan::Input &input,
                        uint32_t &seen) {
  if (input.kind() > plan::InputKind::MAX)
    return bad("unknown kind ", static_cast<int>(input.kind()));
  const char *name = plan::EnumNameInputKind(input.kind());
  bool isCorrection = input.kind() == plan::InputKind::bias_correction;
  if (isCorrection ? !(input.base() >= 0 && input.base() < 1)
                   : input.base() != 0)
    return bad(name, " has the base ", input.base(), ", expected ",
               isCorrection ? "one from 0 to below 1" : "none");
  if (input.kind() == plan::InputKind::coordinate ||
      input.kind() == plan::InputKind::extent ||
      input.kind() == plan::InputKind::positions)
    return checkPartOfDim(check, input, name);
  uint32_t bit = 1u << static_cast<int>(input.kind());
  if (!isCorrection && (seen & bit))
    return bad(name, " is there twice");
  seen |= bit;
  bool isOfSequence = plan::isOfTokens(input.kind());
  if (input.size() != 0 || input.hop() != 0 ||
      (!isOfSequence && orEmpty(input.axes()).size() != 0))
    return bad(name,
               " has axes, a size or a hop, which only a coordinate, extent or "
               "positions have");
  if (absl::Status status =
          checkSplit(check.plan, input.axes(), input.layouts());
      !status.ok())
    return bad(name, ": ", status.message());
  auto view = findView(check, input.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  if (!(*view)->contiguous)
    return bad(name, " is not contiguous");
  switch (input.kind()) {
  case plan::InputKind::tokens:
  case plan::InputKind::targets:
  case plan::InputKind::documents:
  case plan::InputKind::document_positions:
  case plan::InputKind::inner_targets:
    MESHWORK_RETURN_IF_ERROR(
        expectView(**view, name, plan::DType::i32,
                   {check.plan.micro_batch(),
                    storedSize(check, input, check.plan.sequence())}));
    break;
  case plan::InputKind::target_counts:
    MESHWORK_RETURN_IF_ERROR(
        expectView(**view, name, plan::DType::f32, {check.plan.micro_batch()}));
    break;
  case plan::InputKind::random:
  case plan::InputKind::update_random:
    MESHWORK_RETURN_IF_ERROR(expectView(**view, name, plan::DType::i32, {3}));
    break;
  default:
    MESHWORK_RETURN_IF_ERROR(expectScalar(**view, name));
  }
  return expectPersistent(check, **view, name);
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
  return expectPersistent(check, **view, name);
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
