#include "lib/Plan/SavedTensors.h"
#include "absl/container/flat_hash_set.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/StateNames.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
/// Whether the bf16 weights are not their masters to nearest: the update draws.
bool drawsWeights(const Plan &plan) {
  for (const Program *program : *plan.programs())
    for (const Input *input : orEmpty(program->inputs()))
      if (input->kind() == InputKind::update_random)
        return true;
  return false;
}

SavedTensor tensorOf(const Program &program, uint32_t number,
                     const Parameter &parameter, bool drawn) {
  SavedTensor tensor{number, &parameter, {}};
  auto add = [&](std::string name, StateRole role, const Sharded &part) {
    tensor.states.push_back({std::move(name),
                             program.views()->Get(part.view())->dtype(), role,
                             &part});
  };
  const Sharded &master = masterOf(parameter);
  for (const State *state : orEmpty(parameter.states())) {
    if (state->part()->view() == master.view())
      continue;
    if (state->role() == StateRole::optimizer)
      add(state->name()->str(), state->role(), *state->part());
    if (state->role() == StateRole::weight && drawn)
      add(roundedWeightState, state->role(), *state->part());
  }
  const Sharded *own = statePart(parameter, StateRole::master);
  add(weightState, own ? StateRole::master : StateRole::weight, master);
  std::rotate(tensor.states.begin(), tensor.states.end() - 1,
              tensor.states.end());
  return tensor;
}
} // namespace

std::vector<const Parameter *> distinctParameters(const Plan &plan) {
  std::vector<const Parameter *> parameters;
  absl::flat_hash_set<std::string_view> known;
  for (const Program *program : *plan.programs())
    for (const Parameter *parameter : orEmpty(program->parameters()))
      if (known.insert(parameter->name()->string_view()).second)
        parameters.push_back(parameter);
  return parameters;
}

std::vector<ParametersByName> parametersByName(const Plan &plan) {
  std::vector<ParametersByName> programs;
  for (const Program *program : *plan.programs()) {
    ParametersByName &byName = programs.emplace_back();
    for (const Parameter *parameter : orEmpty(program->parameters()))
      byName.emplace(parameter->name()->string_view(), parameter);
  }
  return programs;
}

std::vector<SavedTensor> savedTensors(const Plan &plan) {
  std::vector<SavedTensor> tensors;
  std::vector<ParametersByName> programs = parametersByName(plan);
  bool drawn = drawsWeights(plan);
  for (uint32_t i = 0; i < programs.size(); ++i)
    for (const Parameter *parameter :
         orEmpty(plan.programs()->Get(i)->parameters()))
      if (std::none_of(programs.begin(), programs.begin() + i,
                       [&](const ParametersByName &earlier) {
                         return earlier.contains(
                             parameter->name()->string_view());
                       }))
        tensors.push_back(
            tensorOf(*plan.programs()->Get(i), i, *parameter, drawn));
  return tensors;
}

} // namespace meshwork::plan
