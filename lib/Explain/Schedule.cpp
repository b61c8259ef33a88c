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

bool worksOnGradients(const plan::Program &program,
                      const plan::Collective &op) {
  return std::any_of(
      op.parts()->begin(), op.parts()->end(), [&](const plan::Transfer *part) {
        uint32_t buffer = program.views()->Get(part->src())->buffer();
        return program.buffers()->Get(buffer)->kind() ==
               plan::BufferKind::gradients;
      });
}

/// Whether gradients are reduced once a step: in the update, or under the
/// backward pass of the last microbatch.
bool reducesGradients(const plan::Program &program) {
  for (const auto *list : {program.microbatch(), program.update()})
    for (const plan::Instruction *instruction : orEmpty(list)) {
      const plan::Collective *op = instruction->op_as_Collective();
      if (op && (list == program.update() || op->last_microbatch()) &&
          worksOnGradients(program, *op))
        return true;
    }
  return false;
}

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

std::vector<std::vector<std::string>> actions(const plan::Plan &plan) {
  std::vector<std::string> stage;
  for (uint32_t i = 0; i < plan.microbatches(); ++i) {
    stage.push_back(absl::StrCat("0F", i));
    stage.push_back(absl::StrCat("0B", i));
  }
  if (reducesGradients(*plan.programs()->Get(0)))
    stage.push_back("0REDUCE");
  return {stage};
}

std::string actionsText(const plan::Plan &plan) {
  uint32_t count = plan.microbatches();
  std::string text = "0F0,0B0";
  if (count > 1)
    absl::StrAppend(&text, count > 2 ? ",..." : "", ",0F", count - 1, ",0B",
                    count - 1);
  if (reducesGradients(*plan.programs()->Get(0)))
    text += ",0REDUCE";
  return text;
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
