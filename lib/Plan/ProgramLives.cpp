#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Operands.h"
#include <algorithm>
#include <map>
#include <set>

namespace meshwork::runtime {
namespace {

/// One list, instruction by instruction.
class Toucher {
public:
  Toucher(const plan::Program &program, uint32_t list, plan::Lives &lives)
      : program(program), list(list), lives(lives) {}

  void visit(const plan::Instruction &at, uint32_t index) {
    if (const plan::Wait *wait = at.op_as_Wait())
      return finish(*wait, index);
    touch(at, index);
    const plan::Collective *op = at.op_as_Collective();
    if (op && op->channel() > 0)
      running[op->channel()].started.push_back(&at);
  }

private:
  void touch(const plan::Instruction &at, uint32_t index) {
    forEachOperand(at, [&](const plan::Operand &operand) {
      const plan::View &view = *program.views()->Get(operand.view);
      lives.touch({view.buffer(), list, index, operand.addsUp,
                   orEmpty(view.advances()).size() > 0,
                   at.op_as_Send() != nullptr});
    });
  }

  /// Whether the count is right is another question (PlanCheckAsync.cpp).
  void finish(const plan::Wait &wait, uint32_t index) {
    Channel &of = running[wait.channel()];
    for (; of.finished < std::min<size_t>(wait.count(), of.started.size());
         ++of.finished)
      touch(*of.started[of.finished], index);
  }

  struct Channel {
    std::vector<const plan::Instruction *> started;
    size_t finished = 0;
  };
  const plan::Program &program;
  uint32_t list;
  plan::Lives &lives;
  std::map<uint32_t, Channel> running; // by number
};
} // namespace

const Instructions &listOf(const plan::Program &program, uint32_t list) {
  return orEmpty(program.lists()->Get(list)->instructions());
}

plan::Repeats repeatsOf(const plan::Program &program, uint32_t list) {
  const Instructions &all = listOf(program, list);
  return {plan::repeatsOf(&all), all.size()};
}

plan::ActionTable tableOf(const plan::Program &program) {
  std::span<const plan::Action> actions = plan::actionsOf(program);
  return {plan::listsOf(program), {actions.begin(), actions.end()}};
}

plan::Lives livesOf(const plan::Program &program,
                    const plan::ActionTable &table) {
  plan::Lives lives(table, orEmpty(program.buffers()).size());
  for (uint32_t list = 0; list < table.lists().size(); ++list) {
    lives.setRepeats(list, repeatsOf(program, list));
    Toucher toucher(program, list, lives);
    const Instructions &all = listOf(program, list);
    for (uint32_t i = 0; i < all.size(); ++i)
      toucher.visit(*all.Get(i), i);
  }
  for (uint32_t i = 0; i < orEmpty(program.buffers()).size(); ++i)
    if (program.buffers()->Get(i)->persistent())
      lives.keep(i);
  for (const plan::Input *input : orEmpty(program.inputs()))
    if (plan::isOfMicrobatch(input->kind()))
      lives.touchInput(program.views()->Get(input->view())->buffer());
  lives.finish();
  return lives;
}

namespace {
/// Calls `visit` with each use of a buffer in a list.
template <typename Visit>
void forEachUse(const plan::Program &program, Visit visit) {
  for (uint32_t list = 0; list < orEmpty(program.lists()).size(); ++list)
    for (const plan::Instruction *at : listOf(program, list))
      forEachOperand(*at, [&](const plan::Operand &operand) {
        visit(list, operand, program.views()->Get(operand.view)->buffer());
      });
}
} // namespace

TransferOf transferOf(const plan::Program &program, uint32_t list) {
  const plan::Instruction &at = *listOf(program, list).Get(0);
  if (const plan::Send *op = at.op_as_Send())
    return {op->parts(), op->axis(), op->peer()};
  const plan::Receive &op = *at.op_as_Receive();
  return {op.parts(), op.axis(), op.peer()};
}

plan::Transfers transfersOf(const plan::Program &program,
                            const plan::ActionTable &table,
                            const plan::Lives &lives) {
  std::set<uint32_t> moved; // buffers
  forEachUse(program,
             [&](uint32_t list, const plan::Operand &, uint32_t buffer) {
               plan::ListKind kind = table.lists()[list].kind;
               if (plan::sends(kind) || plan::receives(kind))
                 moved.insert(buffer);
             });
  if (moved.empty())
    return {};
  std::map<std::pair<uint32_t, uint32_t>, bool> uses; // whether written
  forEachUse(program,
             [&](uint32_t list, const plan::Operand &operand, uint32_t buffer) {
               if (moved.contains(buffer))
                 uses[{list, buffer}] |= operand.written;
             });
  std::vector<plan::TransferUse> all;
  for (auto [use, written] : uses)
    all.push_back({use.first, use.second, lives.groupOf(use.second),
                   lives.copiesOf(use.second) > 1, written});
  return {table, lives.copies(), all};
}

std::vector<std::vector<uint32_t>>
settingActions(const plan::Program &program, const plan::ActionTable &table) {
  std::vector<uint32_t> first(orEmpty(program.buffers()).size(),
                              plan::ActionTable::none);
  auto forEachSum = [&](auto visit) {
    for (uint32_t list = 0; list < table.lists().size(); ++list) {
      const Instructions &all = listOf(program, list);
      for (uint32_t i = 0; i < all.size(); ++i)
        forEachOperand(*all.Get(i), [&](const plan::Operand &operand) {
          if (operand.addsUp)
            visit(list, i, program.views()->Get(operand.view)->buffer());
        });
    }
  };
  std::vector<std::vector<uint32_t>> setting;
  for (const plan::ListShape &list : table.lists())
    setting.emplace_back(list.size, plan::ActionTable::none);
  forEachSum([&](uint32_t list, uint32_t, uint32_t buffer) {
    first[buffer] = std::min(first[buffer], table.firstOf(list));
  });
  forEachSum([&](uint32_t list, uint32_t i, uint32_t buffer) {
    setting[list][i] = first[buffer];
  });
  return setting;
}

} // namespace meshwork::runtime
