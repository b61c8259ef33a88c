#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Channels.h"
#include "lib/Plan/Operands.h"
#include <algorithm>
#include <map>
#include <set>

namespace meshwork::plan {
namespace {

/// One list, instruction by instruction.
class Toucher {
public:
  Toucher(const Program &program, uint32_t list, Lives &lives)
      : program(program), list(list), lives(lives),
        channels(listOf(program, list)) {}

  void visit(const Instruction &at, uint32_t index) {
    if (!at.op_as_Wait())
      touch(at, index);
    channels.pass(index, [&](uint32_t ended) {
      touch(*listOf(program, list).Get(ended), index);
    });
  }

private:
  void touch(const Instruction &at, uint32_t index) {
    forEachOperand(at, [&](const Operand &operand) {
      const View &view = *program.views()->Get(operand.view);
      lives.touch({view.buffer(), list, index, operand.addsUp,
                   orEmpty(view.advances()).size() > 0,
                   at.op_as_Send() != nullptr});
    });
  }

  const Program &program;
  uint32_t list;
  Lives &lives;
  Channels channels;
};
} // namespace

const Instructions &listOf(const Program &program, uint32_t list) {
  return orEmpty(program.lists()->Get(list)->instructions());
}

Repeats repeatsOf(const Program &program, uint32_t list) {
  const Instructions &all = listOf(program, list);
  return {repeatsOf(&all), all.size()};
}

ActionTable tableOf(const Program &program) {
  std::span<const Action> actions = actionsOf(program);
  return {listsOf(program), {actions.begin(), actions.end()}};
}

Lives livesOf(const Program &program, const ActionTable &table) {
  Lives lives(table, orEmpty(program.buffers()).size());
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
  for (const Input *input : orEmpty(program.inputs()))
    if (isOfMicrobatch(input->kind()))
      lives.touchInput(program.views()->Get(input->view())->buffer());
  lives.finish();
  return lives;
}

namespace {
/// Calls `visit` with each use of a buffer in a list.
template <typename Visit> void forEachUse(const Program &program, Visit visit) {
  for (uint32_t list = 0; list < orEmpty(program.lists()).size(); ++list)
    for (const Instruction *at : listOf(program, list))
      forEachOperand(*at, [&](const Operand &operand) {
        visit(list, operand, program.views()->Get(operand.view)->buffer());
      });
}
} // namespace

TransferOf transferOf(const Program &program, uint32_t list) {
  const Instruction &at = *listOf(program, list).Get(0);
  if (const Send *op = at.op_as_Send())
    return {op->parts(), op->axis(), op->peer()};
  const Receive &op = *at.op_as_Receive();
  return {op.parts(), op.axis(), op.peer()};
}

Transfers transfersOf(const Program &program, const ActionTable &table,
                      const Lives &lives) {
  std::set<uint32_t> moved; // buffers
  forEachUse(program, [&](uint32_t list, const Operand &, uint32_t buffer) {
    ListKind kind = table.lists()[list].kind;
    if (plan::sends(kind) || plan::receives(kind))
      moved.insert(buffer);
  });
  if (moved.empty())
    return {};
  std::map<std::pair<uint32_t, uint32_t>, bool> uses; // whether written
  forEachUse(program,
             [&](uint32_t list, const Operand &operand, uint32_t buffer) {
               if (moved.contains(buffer))
                 uses[{list, buffer}] |= operand.written;
             });
  std::vector<TransferUse> all;
  for (auto [use, written] : uses)
    all.push_back({use.first, use.second, lives.groupOf(use.second),
                   lives.copiesOf(use.second) > 1, written});
  return {table, lives.copies(), all};
}

std::vector<std::vector<uint32_t>> settingActions(const Program &program,
                                                  const ActionTable &table) {
  std::vector<uint32_t> first(orEmpty(program.buffers()).size(),
                              ActionTable::none);
  auto forEachSum = [&](auto visit) {
    for (uint32_t list = 0; list < table.lists().size(); ++list) {
      const Instructions &all = listOf(program, list);
      for (uint32_t i = 0; i < all.size(); ++i)
        forEachOperand(*all.Get(i), [&](const Operand &operand) {
          if (operand.addsUp)
            visit(list, i, program.views()->Get(operand.view)->buffer());
        });
    }
  };
  std::vector<std::vector<uint32_t>> setting;
  for (const ListShape &list : table.lists())
    setting.emplace_back(list.size, ActionTable::none);
  forEachSum([&](uint32_t list, uint32_t, uint32_t buffer) {
    first[buffer] = std::min(first[buffer], table.firstOf(list));
  });
  forEachSum([&](uint32_t list, uint32_t i, uint32_t buffer) {
    setting[list][i] = first[buffer];
  });
  return setting;
}

} // namespace meshwork::plan
