// What repeats: that all turns of an instruction do the same, elsewhere.
#include "absl/algorithm/container.h"
#include "lib/Plan/Copies.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

absl::Status checkReach(const ProgramCheck &check, const Operand &operand,
                        const std::vector<RepeatShape> &around) {
  const ViewInfo &view = check.views[operand.view];
  const Buffer &buffer = check.bufferOf(view);
  absl::Status status =
      checkInTurns(view, bytesOfCopy(buffer), quote(buffer.name()), around);
  return status.ok() ? status : bad(operand.role, " ", status.message());
}

absl::Status checkTurn(const ProgramCheck &check, const Instruction &at,
                       const std::vector<RepeatShape> &around) {
  if (!around.empty())
    MESHWORK_RETURN_IF_ERROR(checkInRepeat(
        at, absl::c_all_of(around, [](auto &one) { return one.isCounted; })));
  absl::Status status;
  forEachOperand(at, [&](const Operand &operand) {
    if (status.ok())
      status = checkReach(check, operand, around);
  });
  return status;
}

/// What is no instruction's is in no repeat.
absl::Status checkDeclared(const ProgramCheck &check) {
  auto stays = [&](uint32_t view) {
    return view >= check.views.size() || check.views[view].advances.empty();
  };
  for (const Input *input : orEmpty(check.program.inputs()))
    if (!stays(input->view()))
      return bad("input ", EnumNameInputKind(input->kind()), " is view ",
                 input->view(), ", which advances");
  for (const Result *result : orEmpty(check.program.results()))
    if (!stays(result->view()))
      return bad("result ", EnumNameResultKind(result->kind()), " is view ",
                 result->view(), ", which advances");
  for (const Parameter *parameter : orEmpty(check.program.parameters()))
    for (const State *state : orEmpty(parameter->states()))
      if (state->part() && !stays(state->part()->view()))
        return bad("parameter ", quote(parameter->name()), " is view ",
                   state->part()->view(), ", which advances");
  return absl::OkStatus();
}
} // namespace

absl::Status checkTurns(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const Instruction &at = *section.list->Get(i);
      absl::Status status = checkTurn(check, at, section.repeats.around(i));
      if (!status.ok())
        return bad(section.where(i), ": ", status.message());
    }
  return checkDeclared(check);
}

} // namespace meshwork::plan
