// That the ranks of every group meet, on every channel, and that both sides of
// every transfer do: all programs together, a rank for each of their kinds.
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/PlanOrder.h"
#include <algorithm>

namespace meshwork::plan {
namespace {

bool hasTransfers(const ProgramOrder &program) {
  const auto &lists = program.table.lists();
  return std::any_of(lists.begin(), lists.end(), [](const auto &list) {
    return plan::sends(list.kind) || plan::receives(list.kind);
  });
}

/// Where nothing outlives an action and all ranks run the same ones, they come
/// to each list together, and one action of a list is like the next.
bool allAlike(const std::vector<ProgramOrder> &programs) {
  const ProgramOrder &first = programs.front();
  auto same = [&](const Action &a, const ProgramOrder &other, const Action &b) {
    const ListShape &x = first.table.lists()[a.list()],
                    &y = other.table.lists()[b.list()];
    return x.kind == y.kind && x.stage == y.stage &&
           a.microbatch() == b.microbatch();
  };
  for (const ProgramOrder &one : programs)
    if (hasTransfers(one) ||
        !std::equal(first.all().begin(), first.all().end(), one.all().begin(),
                    one.all().end(), [&](const auto &a, const auto &b) {
                      return same(a, one, b);
                    }))
      return false;
  return true;
}

void chooseActions(ProgramOrder &program, bool oncePerList) {
  program.oncePerList = oncePerList;
  for (uint32_t i = 0; i < program.all().size(); ++i)
    if (!oncePerList || program.table.firstOf(program.all()[i].list()) == i)
      program.actions.push_back(i);
}

void findLists(ProgramOrder &program) {
  const std::vector<ListShape> &lists = program.table.lists();
  program.microbatches.resize(lists.size());
  for (const Action &action : program.all())
    program.microbatches[action.list()].push_back(action.microbatch());
  for (uint32_t list = 0; list < lists.size(); ++list)
    program.numbers[{lists[list].kind, lists[list].stage}] = list;
}

/// Whether ranks of several programs take part in it.
bool isShared(const Instruction &at, uint32_t axes) {
  const Collective *op = at.op_as_Collective();
  return op && std::any_of(op->axes()->begin(), op->axes()->end(),
                           [&](uint32_t axis) { return axes >> axis & 1; });
}

/// Ranks of one program come to theirs together: only lists in which others
/// take part matter.
void findEvents(ProgramOrder &program, uint32_t axes) {
  for (uint32_t list = 0; list < program.table.lists().size(); ++list) {
    const Instructions &all = listOf(program.program, list);
    std::vector<uint32_t> &events = program.events.emplace_back();
    if (std::none_of(all.begin(), all.end(),
                     [&](const auto *at) { return isShared(*at, axes); }))
      continue;
    for (const Turn &turn : repeatsOf(program.program, list).turns()) {
      const Instruction &at = *all.Get(turn.instruction);
      if (at.op_as_Collective() || at.op_as_Wait() || at.op_as_Repeat() ||
          at.channel() > 0)
        events.push_back(turn.instruction);
    }
  }
}
} // namespace

absl::Status checkMeetings(const Plan &plan, std::vector<Transfers> transfers,
                           uint64_t &rehearsed) {
  PlanOrder order{plan, Representatives(plan), {}};
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const Program &program = *plan.programs()->Get(i);
    order.programs.push_back(
        {program, tableOf(program), std::move(transfers[i])});
    findLists(order.programs.back());
  }
  MESHWORK_RETURN_IF_ERROR(checkPairs(order));
  const auto &list = orEmpty(plan.program_numbers());
  bool allSame = std::all_of(list.begin(), list.end(),
                             [&](uint32_t p) { return p == list.Get(0); });
  if (allSame) // The same program meets itself.
    return absl::OkStatus();
  rehearsed += order.ranks.size();
  bool alike = allAlike(order.programs);
  for (ProgramOrder &program : order.programs) {
    chooseActions(program, alike);
    findEvents(program, order.ranks.axes());
  }
  return rehearse(order);
}

} // namespace meshwork::plan
