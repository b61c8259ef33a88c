// Budgets of collectives against what a plan does.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include "lib/Spec/Diagnostic.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>
#include <set>

namespace meshwork::explain {
namespace {
using plan::orEmpty;
using spec::CollectiveBudget;

/// The layers that parameters are of.
uint64_t countLayers(const plan::Program &program) {
  std::set<int32_t> layers;
  for (const plan::Parameter *parameter : orEmpty(program.parameters()))
    if (parameter->layer() >= 0)
      layers.insert(parameter->layer());
  return layers.size();
}

/// "tp" of "tp:(1)2": a part counts as its axis.
bool hasAxis(const Traffic &traffic, const std::string &axis) {
  for (absl::string_view one : absl::StrSplit(traffic.axis, ", "))
    if (one.substr(0, one.find(':')) == axis)
      return true;
  return false;
}

bool isMeant(const CollectiveBudget &budget, const Traffic &traffic) {
  bool axes = std::all_of(
      budget.axes.begin(), budget.axes.end(),
      [&](const std::string &axis) { return hasAxis(traffic, axis); });
  bool isRepeated = traffic.phase != "update";
  return budget.kind == traffic.kind && axes &&
         (budget.phase.empty() || budget.phase == traffic.phase) &&
         (budget.per != CollectiveBudget::Per::microbatch || isRepeated) &&
         (budget.per != CollectiveBudget::Per::layer || traffic.isOfLayer);
}

/// Times in a step, or in its last microbatch and its update.
uint64_t timesOf(const CollectiveBudget &budget, const Traffic &traffic) {
  return budget.per == CollectiveBudget::Per::step ? traffic.count
                                                   : traffic.instructions;
}

std::string unitText(const CollectiveBudget &budget, uint64_t layers) {
  switch (budget.per) {
  case CollectiveBudget::Per::layer:
    return absl::StrCat("in the ", counted(layers, "layer"));
  case CollectiveBudget::Per::microbatch:
    return "in a microbatch";
  case CollectiveBudget::Per::step:
    return "in a step";
  }
  return "";
}

std::string check(const plan::Program &program,
                  const std::vector<Traffic> &list,
                  const CollectiveBudget &budget) {
  bool isPerLayer = budget.per == CollectiveBudget::Per::layer;
  uint64_t layers = countLayers(program), found = 0;
  if (isPerLayer && layers == 0)
    return absl::StrCat(
        budget.place, ": error: expect.collectives: ", quote(budget.text),
        ": the model declares no layers; add them to its parameters, like "
        "`transformer.parameter \"block.weight\" layer 0 init ...`\n");
  Table table({">times", "collective", "axis", "phase", "cause"});
  for (const Traffic &traffic : list)
    if (isMeant(budget, traffic)) {
      uint64_t times = timesOf(budget, traffic);
      found = saturatingAdd(found, times);
      table.add({absl::StrCat(times), traffic.kind, traffic.axis, traffic.phase,
                 traffic.cause});
    }
  if (budget.allows(found, isPerLayer ? layers : 1))
    return "";
  return absl::StrCat(
      budget.place, ": error: expect.collectives: ", quote(budget.text),
      ": found ", found, " ", unitText(budget, layers),
      isPerLayer ? absl::StrCat(", expected ", budget.count, " in each") : "",
      table.empty() ? "\n" : ":\n", table.render());
}
} // namespace

std::string brokenBudgets(const plan::Plan &plan,
                          const std::vector<CollectiveBudget> &budgets) {
  std::string text;
  for (const CollectiveBudget &budget : budgets)
    for (const plan::Program *program : *plan.programs()) {
      std::string broken =
          check(*program, traffic(plan, *program, Listing(*program)), budget);
      text += broken;
      if (!broken.empty())
        break; // Others would repeat it.
    }
  return text;
}

} // namespace meshwork::explain
