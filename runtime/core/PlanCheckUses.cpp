// The first instruction to touch a buffer that does not persist writes it.
#include "runtime/core/PlanCheckInternal.h"

namespace meshwork::runtime {
namespace {

/// Lists as they run first. Each microbatch runs its own in this order, so what
/// is written before it is read in the first is so in every one.
std::vector<uint32_t> inOrder(const plan::ActionTable &table) {
  std::vector<uint32_t> order;
  if (table.onceList() != plan::ActionTable::none)
    order.push_back(table.onceList());
  for (uint32_t i = 0; i < table.actions().size(); ++i)
    if (table.firstOf(table.actions()[i].list()) == i)
      order.push_back(table.actions()[i].list());
  return order;
}

absl::Status checkUse(const ProgramCheck &check, const plan::Operand &operand,
                      const std::vector<bool> &filled) {
  const ViewInfo &view = check.views[operand.view];
  const plan::Buffer &buffer = check.bufferOf(view);
  if (!buffer.persistent() && operand.read && !filled[view.buffer])
    return bad(operand.role, " reads buffer ", quote(buffer.name()),
               " before anything was written to it");
  return absl::OkStatus();
}
} // namespace

absl::Status checkUses(const ProgramCheck &check) {
  std::vector<bool> filled(orEmpty(check.program.buffers()).size(), false);
  for (uint32_t list : inOrder(check.table)) {
    const Section &section = check.sections[list];
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const plan::Instruction &at = *section.list->Get(i);
      absl::Status status;
      forEachOperand(at, [&](const plan::Operand &operand) {
        if (status.ok())
          status = checkUse(check, operand, filled);
      });
      if (!status.ok())
        return bad(section.name, "[", i, "] ", quote(at.name()), ": ",
                   status.message());
      forEachOperand(at, [&](const plan::Operand &operand) {
        if (operand.written)
          filled[check.views[operand.view].buffer] = true;
      });
    }
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
