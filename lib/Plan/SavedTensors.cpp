#include "lib/Plan/SavedTensors.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/StateNames.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
/// Whether the bf16 weights are not their masters to nearest: the update draws.
bool drawsWeights(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs())
    for (const plan::Input *input : orEmpty(program->inputs()))
      if (input->kind() == plan::InputKind::update_random)
        return true;
  return false;
}

SavedTensor tensorOf(const plan::Program &program, uint32_t number,
                     const plan::Parameter &parameter, bool drawn) {
  SavedTensor tensor{number, &parameter, {}};
  auto add = [&](std::string name, plan::StateRole role,
                 const plan::Sharded &part) {
    tensor.states.push_back({std::move(name),
                             program.views()->Get(part.view())->dtype(), role,
                             &part});
  };
  const plan::Sharded &master = masterOf(parameter);
  for (const plan::State *state : orEmpty(parameter.states())) {
    if (state->part()->view() == master.view())
      continue;
    if (state->role() == plan::StateRole::optimizer)
      add(state->name()->str(), state->role(), *state->part());
    if (state->role() == plan::StateRole::weight && drawn)
      add(plan::roundedWeightState, state->role(), *state->part());
  }
  const plan::Sharded *own = statePart(parameter, plan::StateRole::master);
  add(plan::weightState,
      own ? plan::StateRole::master : plan::StateRole::weight, master);
  std::rotate(tensor.states.begin(), tensor.states.end() - 1,
              tensor.states.end());
  return tensor;
}
} // namespace

std::vector<ParametersByName> parametersByName(const plan::Plan &plan) {
  std::vector<ParametersByName> programs;
  for (const plan::Program *program : *plan.programs()) {
    ParametersByName &byName = programs.emplace_back();
    for (const plan::Parameter *parameter : orEmpty(program->parameters()))
      byName.emplace(parameter->name()->string_view(), parameter);
  }
  return programs;
}

std::vector<SavedTensor> savedTensors(const plan::Plan &plan) {
  std::vector<SavedTensor> tensors;
  std::vector<ParametersByName> programs = parametersByName(plan);
  bool drawn = drawsWeights(plan);
  for (uint32_t i = 0; i < programs.size(); ++i)
    for (const plan::Parameter *parameter :
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

} // namespace meshwork::runtime
