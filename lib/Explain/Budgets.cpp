// Budgets of collectives against what a plan does.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Spec/Diagnostic.h"
#include "runtime/core/Views.h"
#include <algorithm>
#include <set>

namespace meshwork::explain {
namespace {
using runtime::orEmpty;
using spec::CollectiveBudget;

/// "model.layers.7" of each parameter that has such a number.
uint64_t countLayers(const plan::Program &program) {
  std::set<std::string> layers;
  for (const plan::Parameter *parameter : orEmpty(program.parameters())) {
    std::string prefix;
    for (absl::string_view part : absl::StrSplit(
             parameter->name() ? parameter->name()->str() : "", '.')) {
      absl::StrAppend(&prefix, part, ".");
      if (!part.empty() && std::all_of(part.begin(), part.end(), ::isdigit)) {
        layers.insert(prefix);
        break;
      }
    }
  }
  return layers.size();
}

/// Whether it is there for a repeated layer: the value that needs it, or else
/// the one that moves, is of a layer.
bool isOfLayer(const Traffic &traffic) {
  absl::string_view cause = traffic.cause;
  if (size_t user = cause.find(" for "); user != absl::string_view::npos)
    cause.remove_prefix(user + 5);
  return absl::StrContains(cause.substr(0, cause.find(' ')), ".*.");
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
         (budget.per != CollectiveBudget::Per::layer || isOfLayer(traffic));
}

/// Times in a step, or in its last microbatch and its update.
uint64_t timesOf(const CollectiveBudget &budget, const Traffic &traffic) {
  return budget.per == CollectiveBudget::Per::step ? traffic.count
                                                   : traffic.instructions;
}

std::string unitText(const CollectiveBudget &budget, uint64_t layers) {
  switch (budget.per) {
  case CollectiveBudget::Per::layer:
    return absl::StrCat("in the ", layers, " layers");
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
      std::string broken = check(
          *program, traffic(plan, *program, Listing(plan, *program)), budget);
      text += broken;
      if (!broken.empty())
        break; // Others would repeat it.
    }
  return text;
}

} // namespace meshwork::explain
