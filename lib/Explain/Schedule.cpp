#include "lib/Explain/Schedule.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
using plan::orEmpty;

/// "lhs f32[1,4,8], rhs f32[1,8,2] -> dst f32[1,4,2]": each view by its role.
std::string operandsText(const std::vector<plan::ViewInfo> &views,
                         const plan::Instruction &instruction) {
  constexpr size_t shown = 12; // A bucket may hold hundreds.
  std::string reads, writes;
  size_t count = 0;
  plan::forEachOperand(instruction, [&](const plan::Operand &operand) {
    if (++count > shown)
      return;
    const plan::ViewInfo &view = views[operand.view];
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

/// Those of microbatches: `step` and `update` are of no stage.
static std::vector<std::string> textsOf(const plan::Program &program) {
  std::vector<plan::ListShape> lists = plan::listsOf(program);
  std::vector<std::string> texts;
  for (const plan::Action &action : plan::actionsOf(program))
    if (const plan::ListShape &list = lists[action.list()];
        plan::isOfMicrobatch(list.kind))
      texts.push_back(plan::textOf(list, action.microbatch()));
  return texts;
}

std::vector<std::vector<std::string>> actions(const plan::Plan &plan) {
  std::vector<std::vector<std::string>> all;
  for (const plan::Program *program : *plan.programs())
    all.push_back(textsOf(*program));
  return all;
}

std::string actionsText(const plan::Program &program) {
  constexpr size_t shown = 2; // at either end
  std::vector<std::string> all = textsOf(program);
  if (all.size() > 2 * shown) {
    all.erase(all.begin() + shown, all.end() - shown);
    all.insert(all.begin() + shown, "...");
  }
  return absl::StrJoin(all, ",");
}

std::string instructionsText(const plan::Plan &plan,
                             const plan::Program &program,
                             const Listing &listing) {
  auto views = plan::decodeViews(plan, program);
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
