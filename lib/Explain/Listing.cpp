#include "lib/Explain/Listing.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Operation.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Views.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>

namespace meshwork::explain {
using plan::orEmpty;

Listing::Listing(const plan::Program &program) : order(plan::tableOf(program)) {
  for (uint32_t i = 0; i < order.lists().size(); ++i) {
    uint64_t begin = instructions.size();
    plan::Repeats repeats = plan::repeatsOf(program, i);
    for (const plan::Instruction *instruction : plan::listOf(program, i)) {
      auto number = static_cast<uint32_t>(instructions.size() - begin);
      auto around = repeats.around(number);
      bool isCounted = std::any_of(
          around.begin(), around.end(),
          [](const plan::RepeatShape &shape) { return shape.isCounted; });
      most.push_back(repeats.timesOf(number));
      times.push_back(isCounted ? 0 : most.back());
      instructions.push_back(instruction);
    }
    list.push_back({plan::nameOf(order.lists()[i]), begin, instructions.size(),
                    order.runsOf(i), order.lists()[i].kind,
                    order.lists()[i].stage});
  }
}

const Phase &Listing::phaseOf(uint64_t index) const {
  return *std::find_if(list.begin(), list.end() - 1,
                       [&](const Phase &phase) { return index < phase.end; });
}

std::string operationKind(const plan::Instruction &instruction) {
  if (const plan::Collective *op = instruction.op_as_Collective())
    return plan::EnumNameCollectiveKind(op->kind());
  const plan::Matmul *product = instruction.op_as_Matmul();
  std::string name = plan::nameOf(instruction.op_type());
  return product && product->epilogue() != plan::Epilogue::none
             ? absl::StrCat(name, "_",
                            plan::EnumNameEpilogue(product->epilogue()))
             : name;
}

std::string operationText(const plan::Plan &plan,
                          const plan::Instruction &instruction) {
  const plan::Launch *launch = instruction.op_as_Launch();
  if (const plan::Repeat *repeat = instruction.op_as_Repeat())
    return absl::StrCat("repeat the next ", repeat->instructions(), " ",
                        plan::isCounted(*repeat) ? "at most " : "",
                        counted(repeat->times(), "time"));
  if (!launch)
    return operationKind(instruction);
  return absl::StrCat("launch ",
                      clean(plan.kernels()->Get(launch->kernel())->symbol()));
}

uint64_t numRanks(const plan::Plan &plan) {
  uint64_t ranks = 1;
  for (const plan::Axis *axis : orEmpty(plan.mesh()))
    ranks *= axis->size();
  return ranks;
}

std::string ranksText(const plan::Plan &plan, uint32_t index) {
  uint64_t all = numRanks(plan);
  if (orEmpty(plan.program_numbers()).size() <= 1)
    return "all " + counted(all, "rank");
  constexpr uint64_t shown = 8;
  std::string text;
  uint64_t count = 0;
  for (uint64_t rank = 0; rank < all; ++rank)
    if (plan::programOf(plan, rank) == index && count++ < shown)
      absl::StrAppend(&text, text.empty() ? "" : ", ", rank);
  if (count > shown)
    absl::StrAppend(&text, " and ", count - shown, " more");
  return count == 0 ? "no rank"
                    : absl::StrCat(count == 1 ? "rank " : "ranks ", text);
}

std::string axesText(const plan::Plan &plan,
                     const flatbuffers::Vector<uint32_t> *axes) {
  std::string text;
  for (uint32_t axis : orEmpty(axes))
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    clean(plan.mesh()->Get(axis)->name()));
  return text.empty() ? "-" : text;
}

} // namespace meshwork::explain
