#include "lib/Explain/Schedule.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Operands.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
using runtime::orEmpty;

/// "lhs f32[1,4,8], rhs f32[1,8,2] -> dst f32[1,4,2]": each view by its role.
std::string operandsText(const std::vector<runtime::ViewInfo> &views,
                         const plan::Instruction &instruction) {
  constexpr size_t shown = 12; // A bucket may hold hundreds.
  std::string reads, writes;
  size_t count = 0;
  plan::forEachOperand(instruction, [&](const plan::Operand &operand) {
    if (++count > shown)
      return;
    const runtime::ViewInfo &view = views[operand.view];
    std::string &list = operand.written ? writes : reads;
    absl::StrAppend(&list, list.empty() ? "" : ", ",
                    typeText(view.dtype, view.shape));
  });
  if (count > shown)
    absl::StrAppend(&writes, " and ", count - shown, " more");
  return absl::StrCat(reads, reads.empty() ? "-> " : " -> ",
                      writes.empty() ? "-" : writes);
}
} // namespace

namespace {
/// The actions of the first program's stage: `step` and `update` are of none.
/// All programs run the same actions.
std::vector<plan::Action> ofStage(const plan::Program &program,
                                  const std::vector<plan::ListShape> &lists) {
  std::vector<plan::Action> found;
  for (const plan::Action &action : plan::actionsOf(program))
    if (plan::isOfMicrobatch(lists[action.list()].kind))
      found.push_back(action);
  return found;
}
} // namespace

std::vector<std::vector<std::string>> actions(const plan::Plan &plan) {
  const plan::Program &program = *plan.programs()->Get(0);
  std::vector<plan::ListShape> lists = plan::listsOf(program);
  std::vector<std::string> stage;
  for (const plan::Action &action : ofStage(program, lists))
    stage.push_back(plan::textOf(lists[action.list()], action.microbatch()));
  return {stage};
}

std::string actionsText(const plan::Plan &plan) {
  constexpr size_t shown = 2; // at either end
  std::vector<std::string> all = actions(plan)[0];
  if (all.size() > 2 * shown)
    all.erase(all.begin() + shown, all.end() - shown);
  else
    return absl::StrJoin(all, ",");
  all.insert(all.begin() + shown, "...");
  return absl::StrJoin(all, ",");
}

std::string instructionsText(const plan::Plan &plan,
                             const plan::Program &program,
                             const Listing &listing) {
  auto views = runtime::decodeViews(plan, program);
  if (!views.ok()) // Not for a plan that was checked.
    return absl::StrCat("  ", views.status().message(), "\n");
  std::string text;
  for (const Phase &phase : listing.phases()) {
    if (phase.begin == phase.end)
      continue;
    absl::StrAppend(&text, "\n", phase.name, "\n");
    Table table(
        {">#", "name", "operation", "reads -> writes", ">flops", ">bytes"});
    for (uint64_t i = phase.begin; i < phase.end; ++i)
      table.add({absl::StrCat(i), clean(listing[i].name()),
                 operationText(plan, listing[i]),
                 operandsText(*views, listing[i]),
                 countText(listing[i].flops()), bytesText(listing[i].bytes())});
    text += table.render();
  }
  return text;
}

} // namespace meshwork::explain
