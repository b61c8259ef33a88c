// How parameters are split over the mesh.
#include "lib/Explain/Format.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "lib/Report/Parts.h"
#include "meshwork/Plan/LayerNames.h"
#include "meshwork/Plan/Ranges.h"
#include <map>

namespace meshwork::report {
namespace {
using plan::orEmpty;

std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

/// Of one dim: its axes, major first, with what layout the first of them have.
Json dimJson(const plan::Plan &plan, const plan::AxisList &dim) {
  Json axes = Json::array();
  const auto &layouts = orEmpty(dim.layouts());
  for (uint32_t i = 0; i < orEmpty(dim.axes()).size(); ++i)
    axes.push_back(
        textOf(plan.mesh()->Get(dim.axes()->Get(i))->name()) +
        (i < layouts.size()
             ? layout::suffixOf(static_cast<plan::Layout>(layouts.Get(i)))
             : ""));
  return axes;
}

/// What a rank holds for a parameter: [] of a dim that is whole.
Json stateJson(const plan::Plan &plan, const plan::State &state,
               const std::vector<plan::ViewInfo> &views) {
  Json one = {{"state", textOf(state.name())}};
  uint32_t view = plan::viewOf(state.part());
  if (view == plan::noView)
    return one;
  one["type"] = explain::typeText(views[view].dtype, views[view].shape);
  Json &dims = one["split"] = Json::array();
  for (const plan::AxisList *dim : orEmpty(state.part()->dims()))
    dims.push_back(dimJson(plan, *dim));
  return one;
}

Json parameterJson(const plan::Plan &plan, const plan::Parameter &parameter,
                   const std::vector<plan::ViewInfo> &views) {
  Json states = Json::array();
  for (const plan::State *state : orEmpty(parameter.states()))
    states.push_back(stateJson(plan, *state, views));
  const auto &shape = orEmpty(parameter.shape());
  return {{"shape", std::vector<int64_t>(shape.begin(), shape.end())},
          {"states", std::move(states)}};
}

/// In the order of the first of each: parameters of one name but for the layer,
/// that are alike.
class Groups {
public:
  void add(const plan::Parameter &parameter, Json one, uint32_t program) {
    std::string name =
        plan::overLayers(textOf(parameter.name()), parameter.layer());
    std::string key =
        name + "\n" + one.dump(-1, ' ', false, Json::error_handler_t::replace);
    auto [known, isNew] = places.try_emplace(std::move(key), list.size());
    if (isNew) {
      list.push_back({{"name", std::move(name)},
                      {"count", 0},
                      {"programs", Json::array()}});
      list.back().update(one);
    }
    Json &group = list[known->second];
    group["count"] = group["count"].get<uint64_t>() + 1;
    Json &programs = group["programs"];
    if (programs.empty() || programs.back() != program)
      programs.push_back(program);
  }
  Json take() { return std::move(list); }

private:
  Json list = Json::array();
  std::map<std::string, size_t> places;
};
} // namespace

Json parametersJson(const plan::Plan &plan) {
  Groups groups;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    auto views = plan::decodeViews(plan, program);
    if (!views.ok()) // Not for a plan that was checked.
      continue;
    for (const plan::Parameter *one : orEmpty(program.parameters()))
      groups.add(*one, parameterJson(plan, *one, *views), i);
  }
  return groups.take();
}

} // namespace meshwork::report
