// The first instruction to touch a buffer that does not persist writes it, in
// every microbatch.
#include "lib/Plan/PlanCheckInternal.h"
#include <map>

namespace meshwork::plan {
namespace {

/// Lists as they run first. Each microbatch runs its own in this order, but for
/// those that come late in some.
std::vector<uint32_t> inOrder(const ActionTable &table) {
  std::vector<uint32_t> order;
  if (table.onceList() != ActionTable::none)
    order.push_back(table.onceList());
  for (uint32_t i = 0; i < table.actions().size(); ++i)
    if (table.firstOf(table.actions()[i].list()) == i)
      order.push_back(table.actions()[i].list());
  return order;
}

/// Lists that some microbatch runs later than what stands behind them, as those
/// of weight_grad may. What they write is not there for others.
std::vector<bool> lateLists(const ActionTable &table) {
  std::vector<bool> late(table.lists().size());
  std::map<uint32_t, uint32_t> farthest; // list that a microbatch has run
  for (const Action &action : table.actions()) {
    uint32_t list = action.list();
    if (!isOfMicrobatch(table.lists()[list].kind))
      continue;
    uint32_t &last = farthest[action.microbatch()];
    late[list] = late[list] || list < last;
    last = std::max(last, list);
  }
  return late;
}

absl::Status checkUse(const ProgramCheck &check, const Operand &operand,
                      const std::vector<bool> &filled) {
  const ViewInfo &view = check.views[operand.view];
  const Buffer &buffer = check.bufferOf(view);
  if (!buffer.persistent() && operand.read && !filled[view.buffer])
    return bad(operand.role, " reads buffer ", quote(buffer.name()),
               " before anything was written to it");
  return absl::OkStatus();
}
} // namespace

absl::Status checkUses(const ProgramCheck &check) {
  std::vector<bool> filled(orEmpty(check.program.buffers()).size(), false);
  std::vector<bool> late = lateLists(check.table);
  for (uint32_t list : inOrder(check.table)) {
    const Section &section = check.sections[list];
    std::vector<uint32_t> here; // what the list is the first to fill
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      const Instruction &at = *section.list->Get(i);
      absl::Status status;
      forEachOperand(at, [&](const Operand &operand) {
        if (status.ok())
          status = checkUse(check, operand, filled);
      });
      if (!status.ok())
        return bad(section.where(i), ": ", status.message());
      forEachOperand(at, [&](const Operand &operand) {
        uint32_t buffer = check.views[operand.view].buffer;
        if (operand.written && !filled[buffer]) {
          filled[buffer] = true;
          here.push_back(buffer);
        }
      });
    }
    if (late[list])
      for (uint32_t buffer : here)
        filled[buffer] = false;
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
