// The first instruction to touch a buffer that does not persist writes it, in
// every microbatch. What a counted repeat is the first to write is not there
// behind it: it may run no turn.
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

/// What has been written so far; what only a part of the way writes can be
/// taken back behind it.
class Filled {
public:
  explicit Filled(const ProgramCheck &check)
      : check(check), filled(orEmpty(check.program.buffers()).size(), false) {}

  absl::Status read(const Instruction &at) const {
    absl::Status status;
    forEachOperand(at, [&](const Operand &operand) {
      if (status.ok())
        status = checkUse(check, operand, filled);
    });
    return status;
  }
  void write(const Instruction &at) {
    forEachOperand(at, [&](const Operand &operand) {
      uint32_t buffer = check.views[operand.view].buffer;
      if (operand.written && !filled[buffer]) {
        filled[buffer] = true;
        order.push_back(buffer);
      }
    });
  }
  size_t mark() const { return order.size(); }
  void takeBack(size_t mark) {
    for (; order.size() > mark; order.pop_back())
      filled[order.back()] = false;
  }

private:
  const ProgramCheck &check;
  std::vector<bool> filled; // by buffer
  std::vector<uint32_t> order;
};

/// Takes back what each counted repeat of a list wrote first, where it ends.
class CountedParts {
public:
  CountedParts(const Section &section, Filled &filled)
      : section(section), filled(filled) {}

  void reach(uint32_t i) {
    for (; !open.empty() && open.back().end <= i; open.pop_back())
      filled.takeBack(open.back().mark);
  }
  void pass(uint32_t i) {
    const Repeat *repeat = section.list->Get(i)->op_as_Repeat();
    if (repeat && isCounted(*repeat))
      open.push_back({i + 1 + repeat->instructions(), filled.mark()});
  }

private:
  struct Part {
    uint32_t end;
    size_t mark;
  };
  const Section &section;
  Filled &filled;
  std::vector<Part> open;
};

absl::Status checkList(const Section &section, Filled &filled) {
  CountedParts counted(section, filled);
  for (uint32_t i = 0; i < section.list->size(); ++i) {
    const Instruction &at = *section.list->Get(i);
    counted.reach(i);
    if (absl::Status status = filled.read(at); !status.ok())
      return bad(section.where(i), ": ", status.message());
    filled.write(at);
    counted.pass(i);
  }
  counted.reach(section.list->size());
  return absl::OkStatus();
}
} // namespace

absl::Status checkUses(const ProgramCheck &check) {
  Filled filled(check);
  std::vector<bool> late = lateLists(check.table);
  for (uint32_t list : inOrder(check.table)) {
    size_t before = filled.mark();
    MESHWORK_RETURN_IF_ERROR(checkList(check.sections[list], filled));
    if (late[list])
      filled.takeBack(before);
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
