// What a plan holds, for people and for programs: memory, work, communication,
// order, and the story of one value.
//
//   auto file = runtime::PlanFile::open("model.mwplan");
//   std::string tables = explain::text((*file)->plan());
//   absl::StatusOr<std::string> story = explain::value((*file)->plan(),
//   "wte.weight");
//
// Every function needs a plan that `PlanFile` or `checkPlan` has accepted.
// Texts are UTF-8, end with a line end, and hold no control character from the
// plan.
#pragma once

#include "absl/status/statusor.h"
#include "lib/Explain/Measured.h"
#include "lib/Spec/Budget.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <string_view>

namespace meshwork::explain {

struct TextOptions {
  bool schedule = false; // also each instruction: index, name, operands, cost
};

/// Tables to read. Memory and work are those of one rank; several programs are
/// told one after another.
std::string text(const plan::Plan &plan, const TextOptions &options = {});

/// What the whole plan should take on its machine, in one line: `text` has it
/// below its header, `meshwork compile` prints it last, with --estimate alone.
std::string wholeText(const plan::Plan &plan);
/// Likewise one JSON object: `format_version`, `memory_per_rank_bytes`,
/// `host_memory_per_rank`, `choices` and `estimate` as `json` has them.
std::string estimateJson(const plan::Plan &plan);

/// Memory alone, of the program that needs most.
std::string peakMemory(const plan::Plan &plan);

/// A message for each budget that the plan breaks, with what was found and its
/// causes; "" when it keeps all. README.md says what a budget counts.
std::string brokenBudgets(const plan::Plan &plan,
                          const std::vector<spec::CollectiveBudget> &budgets);

/// One JSON object, indented, with the keys of README.md. Memory is in bytes
/// per rank (the rank that needs most), flops are of a step over all ranks,
/// collectives are per optimizer step. Fails with resourceExhausted when a step
/// has so many microbatches or operands (above 2^20) that their lists would be
/// of no use. `measured` adds a run's times.
absl::StatusOr<std::string> json(const plan::Plan &plan,
                                 const Measured *measured = nullptr);

/// One parameter, buffer, or value of the step on whole tensors: shape, place,
/// split, what moves it, each instruction that reads or writes it. Also why:
/// from the annotation over the ops that it went through to the reshards.
/// `name` is a whole name or the end of one, and must mean one value. With `*`
/// and `?` it may mean several. invalidArgument names the nearest ones, or
/// those that it could mean.
absl::StatusOr<std::string> value(const plan::Plan &plan,
                                  std::string_view name);
/// Only the why, as one JSON object with the keys of README.md; of several
/// values `matches` has one for each.
absl::StatusOr<std::string> valueJson(const plan::Plan &plan,
                                      std::string_view name);

} // namespace meshwork::explain
