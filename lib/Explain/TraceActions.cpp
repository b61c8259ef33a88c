#include "lib/Explain/TraceActions.h"
#include "lib/Plan/Actions.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Programs.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {

TraceActions::TraceActions(const plan::Plan &plan) : plan(plan) {
  for (const plan::Program *program : *plan.programs()) {
    std::vector<plan::ListShape> lists = plan::listsOf(*program);
    std::map<std::string, Action> &named = actions.emplace_back();
    for (const plan::Action &action : plan::actionsOf(*program))
      named[plan::textOf(lists[action.list()], action.microbatch())] = {
          action.list(), action.microbatch()};
  }
}

std::optional<TraceActions::Action>
TraceActions::find(uint64_t rank, const std::string &text) const {
  const auto &named = actions[plan::programOf(plan, rank)];
  auto found = named.find(text);
  return found == named.end() ? std::nullopt : std::optional(found->second);
}

const plan::Program &TraceActions::programOf(uint64_t rank) const {
  return *plan.programs()->Get(plan::programOf(plan, rank));
}

/// As a trace has it: what is not UTF-8 was replaced.
static bool isName(const flatbuffers::String *name, const std::string &text) {
  using nlohmann::json;
  std::string own = name ? name->str() : std::string();
  return own == text ||
         json::parse(json(own).dump(-1, ' ', false,
                                    json::error_handler_t::replace)) == text;
}

bool TraceActions::isInstruction(uint64_t rank, uint32_t list,
                                 uint64_t instruction, const std::string &name,
                                 const std::string &operation) const {
  const auto &instructions = plan::listOf(programOf(rank), list);
  if (instruction >= instructions.size())
    return false;
  const plan::Instruction &one =
      *instructions.Get(static_cast<uint32_t>(instruction));
  return operation == plan::EnumNameOperation(one.op_type()) &&
         isName(one.name(), name);
}

} // namespace meshwork::explain
