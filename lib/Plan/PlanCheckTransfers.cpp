// Transfers between stages: each one alone, and that it stands where it may.
// Whether both sides meet is checked over all programs (PlanCheckOrder.cpp).
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

template <typename Transfer>
absl::Status check(const ProgramCheck &check, const Transfer &op) {
  const auto &mesh = *check.plan.mesh();
  if (op.axis() >= mesh.size())
    return bad("it is along axis ", op.axis(), ", the mesh has ", mesh.size());
  const Axis &axis = *mesh.Get(op.axis());
  if (op.peer() >= axis.size())
    return bad("its peer is at ", op.peer(), " of axis ", quote(axis.name()),
               ", which has the size ", axis.size());
  return absl::OkStatus();
}

absl::Status checkList(const Section &section, const ListShape &shape) {
  if (section.list->size() == 0)
    return checkPlace(Operation::NONE, shape);
  for (uint32_t i = 0; i < section.list->size(); ++i) {
    const Instruction &at = *section.list->Get(i);
    if (absl::Status status = checkPlace(at.op_type(), shape); !status.ok())
      return bad(section.where(i), ": ", status.message());
  }
  return absl::OkStatus();
}
} // namespace

absl::Status checkTransfer(const ProgramCheck &check, const Send &op) {
  return plan::check(check, op);
}
absl::Status checkTransfer(const ProgramCheck &check, const Receive &op) {
  return plan::check(check, op);
}

absl::Status checkTransferBuffers(const ProgramCheck &check,
                                  const Lives &lives) {
  for (const Section &section : check.sections) {
    if (!plan::sends(section.kind) && !plan::receives(section.kind))
      continue;
    absl::Status status;
    forEachOperand(*section.list->Get(0), [&](const Operand &operand) {
      const ViewInfo &view = check.views[operand.view];
      const Buffer &buffer = check.bufferOf(view);
      if (buffer.persistent() || !lives.livesInMicrobatch(view.buffer))
        status = bad(section.name, " moves buffer ", quote(buffer.name()),
                     ", which outlives a microbatch, expected one that lives "
                     "anew in each");
    });
    MESHWORK_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status checkTransferLists(const ProgramCheck &check) {
  for (uint32_t i = 0; i < check.sections.size(); ++i)
    MESHWORK_RETURN_IF_ERROR(
        checkList(check.sections[i], check.table.lists()[i]));
  return absl::OkStatus();
}

} // namespace meshwork::plan
