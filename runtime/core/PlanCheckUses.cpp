// Each instruction touches only buffers that are live, and the first to touch
// a buffer that does not persist writes it.
#include "runtime/core/PlanCheckInternal.h"

namespace meshwork::runtime {
namespace {

/// Buffers that the runtime itself fills before instructions run.
std::vector<bool> filledByRuntime(const ProgramCheck &check) {
  std::vector<bool> filled(orEmpty(check.program.buffers()).size(), false);
  for (const plan::Input *input : orEmpty(check.program.inputs()))
    filled[check.views[input->view()].buffer] = true;
  return filled;
}

absl::Status checkUse(const ProgramCheck &check, const plan::Operand &operand,
                      uint64_t now, std::vector<bool> &filled) {
  const ViewInfo &view = check.views[operand.view];
  const plan::Buffer &buffer = check.bufferOf(view);
  if (buffer.persistent())
    return absl::OkStatus();
  if (now < buffer.first_use() || now > buffer.last_use())
    return bad(operand.role, " uses buffer ", quote(buffer.name()),
               " at instruction ", now, ", but it lives from ",
               buffer.first_use(), " to ", buffer.last_use());
  if (operand.read && !filled[view.buffer])
    return bad(operand.role, " reads buffer ", quote(buffer.name()),
               " before anything was written to it");
  return absl::OkStatus();
}
} // namespace

absl::Status checkUses(const ProgramCheck &check) {
  std::vector<bool> filled = filledByRuntime(check);
  for (const Section &section : check.sections)
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const plan::Instruction &at = *section.list->Get(i);
      absl::Status status;
      forEachOperand(at, [&](const plan::Operand &operand) {
        if (status.ok())
          status = checkUse(check, operand, section.begin + i, filled);
      });
      if (!status.ok())
        return bad(section.name, "[", i, "] ", quote(at.name()), ": ",
                   status.message());
      forEachOperand(at, [&](const plan::Operand &operand) {
        if (operand.written)
          filled[check.views[operand.view].buffer] = true;
      });
    }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
