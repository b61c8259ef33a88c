// The first instruction to touch a buffer that does not persist writes it, in
// every microbatch.
#include "runtime/StatusMacros.h"
#include "runtime/core/PlanCheckInternal.h"
#include <map>
#include <set>

namespace meshwork::runtime {
namespace {

/// Lists in the orders in which microbatches run them, each order once: where
/// gradients of weights come later in some, there are several.
std::set<std::vector<uint32_t>> ordersOf(const plan::ActionTable &table) {
  std::vector<uint32_t> common; // before any microbatch, and between them
  std::map<uint32_t, std::vector<uint32_t>> ofMicrobatch;
  if (table.onceList() != plan::ActionTable::none)
    common.push_back(table.onceList());
  for (const plan::Action &action : table.actions()) {
    uint32_t list = action.list();
    if (plan::isOfMicrobatch(table.lists()[list].kind)) {
      ofMicrobatch.try_emplace(action.microbatch(), common)
          .first->second.push_back(list);
      continue;
    }
    common.push_back(list);
    for (auto &[microbatch, order] : ofMicrobatch)
      order.push_back(list);
  }
  std::set<std::vector<uint32_t>> orders;
  for (auto &[microbatch, order] : ofMicrobatch)
    orders.insert(std::move(order));
  if (orders.empty())
    orders.insert(std::move(common));
  return orders;
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

absl::Status checkInOrder(const ProgramCheck &check,
                          const std::vector<uint32_t> &order) {
  std::vector<bool> filled(orEmpty(check.program.buffers()).size(), false);
  for (uint32_t list : order) {
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
} // namespace

absl::Status checkUses(const ProgramCheck &check) {
  for (const std::vector<uint32_t> &order : ordersOf(check.table))
    MESHWORK_RETURN_IF_ERROR(checkInOrder(check, order));
  return absl::OkStatus();
}

} // namespace meshwork::runtime
