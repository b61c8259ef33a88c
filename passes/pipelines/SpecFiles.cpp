#include "passes/pipelines/SpecFiles.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Verdict.h"
#include "lib/Spec/FilePath.h"
#include "meshwork/Text/Counted.h"

#include <algorithm>

namespace meshwork::pipelines {
namespace {

constexpr const char *key = "pipeline.schedule";

/// Of a table that is read: what does not fit the spec, or nothing.
std::string misfit(const schedules::Table &table, const spec::Spec &spec) {
  auto count = [](const char *what, size_t found, size_t expected,
                  const std::string &of) {
    return found == expected ? ""
                             : "found " + counted(found, what) + ", expected " +
                                   std::to_string(expected) + ", " + of + "; ";
  };
  size_t ranks = table.ranks.size();
  std::string text =
      count("rank", ranks, spec.stageRanks(),
            "the size of the axis that layers are shared out over") +
      count("microbatch", static_cast<size_t>(table.microbatches),
            spec.microbatches(),
            "batch.global over batch.micro and data ranks");
  if (spec.pipeline.virtualStages > 0)
    text +=
        count("stage", table.rankOf.size(), ranks * spec.pipeline.virtualStages,
              "ranks times pipeline.virtual_stages");
  for (const auto &rank : table.ranks)
    for (const schedules::Action &action : rank)
      if (!schedules::isCompute(action.kind))
        return text + "found " + schedules::text(action) +
               ", expected F, B, I and W alone: the compiler places what moves "
               "between them; leave the others out";
  if (!text.empty())
    text.resize(text.size() - 2);
  return text;
}

Diagnostics resolveSchedule(spec::Spec &spec, const std::string &origin,
                            const std::string &specFile, const ReadFile &read) {
  std::string &schedule = spec.pipeline.schedule;
  bool isText = schedule.find('\n') != std::string::npos;
  if (!isText && !schedule.ends_with(".csv"))
    return {};
  auto wrong = [&](const std::string &message) -> Diagnostics {
    size_t line = std::min(message.find('\n'), message.size());
    return {{Severity::error,
             {origin, 0, 0},
             key + (": " + message.substr(0, line)),
             message.substr(std::min(line + 1, message.size()))}};
  };
  std::string path = isText ? key : spec::pathOf(schedule, origin, specFile);
  std::optional<std::string> text = isText ? schedule : read(path);
  if (!text)
    return wrong(spec::cannotRead(path));
  std::string note;
  absl::StatusOr<schedules::Table> table =
      schedules::parseCsv(*text, path, &note);
  if (!table.ok())
    return wrong(std::string(table.status().message()));
  if (std::string message = misfit(*table, spec); !message.empty())
    return wrong(quote(path) + ": " + message);
  if (absl::Status legal = schedules::judge(*table); !legal.ok())
    return wrong(quote(path) + " is not legal:\n" +
                 std::string(legal.message()));
  schedule = schedules::csv(*table);
  if (note.empty())
    return {};
  return {{Severity::warning, {origin, 0, 0}, key + (": " + note), ""}};
}
} // namespace

/// Of a spec with a machine.
static Diagnostics checkBudget(const spec::Spec &spec,
                               std::map<std::string, std::string> &origins) {
  Diagnostics wrong;
  if (!cost::memoryLimit(spec))
    for (const auto &[key, message] : spec::withoutBudget(spec))
      wrong.push_back(
          {Severity::error, {origins[key], 0, 0}, key + ": " + message});
  return wrong;
}

/// The machine says which GPUs it has, where the spec does not.
static Diagnostics completeArch(spec::Spec &spec,
                                std::map<std::string, std::string> &origins) {
  std::string &origin = origins["target.arch"];
  cost::Machine machine = cost::machineOf(spec);
  if (origin != "default" || machine.arch.empty())
    return {};
  spec.arch = machine.arch;
  origin = "target.machine " + quote(machine.name);
  if (!spec.fp8 || spec.arch != "sm_80")
    return {};
  return {{Severity::error,
           {origins["precision.matmul"], 0, 0},
           "precision.matmul: found \"fp8\" with " + origin +
               ", whose GPUs (sm_80) multiply nothing of 8 bits; expected "
               "\"compute\", or another machine"}};
}

Diagnostics resolveFiles(spec::Spec &spec,
                         std::map<std::string, std::string> &origins,
                         const std::string &specFile, const ReadFile &read) {
  Diagnostics wrong =
      cost::resolveMachine(spec, origins["target.machine"], specFile, read);
  auto add = [&](const Diagnostics &more) {
    wrong.insert(wrong.end(), more.begin(), more.end());
  };
  if (!hasErrors(wrong)) {
    add(checkBudget(spec, origins));
    add(completeArch(spec, origins));
  }
  add(resolveSchedule(spec, origins[key], specFile, read));
  return wrong;
}

} // namespace meshwork::pipelines
