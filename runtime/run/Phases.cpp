#include "runtime/run/Phases.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/run/CheckOptions.h"
#include "runtime/save/RestoreStates.h"

namespace meshwork::runtime {
namespace {
template <typename... Parts> absl::Status usage(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status ofPlan(const Phase &phase, const absl::Status &status) {
  return withExitCode(
      absl::Status(status.code(), absl::StrCat("--then ", quote(phase.plan),
                                               ": ", status.message())),
      static_cast<ExitCode>(exitCodeOf(status)));
}

/// The windows of epochs are numbered by their length.
absl::Status checkWindowsOf(const plan::Plan &plan, const plan::Plan &before,
                            const RunOptions &options) {
  if (options.order != "epochs" || plan.sequence() == before.sequence())
    return absl::OkStatus();
  return usage("has sequences of ", plan.sequence(),
               " tokens, the plan before of ", before.sequence(),
               ": with --order epochs some windows would be read twice and "
               "others not at all; give --order random");
}

absl::Status openPhase(Phase &phase, const Processes &processes) {
  auto work = processes.fileWork("it reads the plan");
  auto file = plan::PlanFile::open(phase.plan);
  MESHWORK_RETURN_IF_ERROR(file.status());
  phase.file = *std::move(file);
  return absl::OkStatus();
}

absl::Status checkNext(const plan::Plan &plan, const plan::Plan &before,
                       const RunOptions &options, const Processes &processes) {
  uint32_t ranks = 0;
  MESHWORK_RETURN_IF_ERROR(matchPlans(plan, before));
  MESHWORK_RETURN_IF_ERROR(checkWindowsOf(plan, before, options));
  MESHWORK_RETURN_IF_ERROR(documentMarks(plan, options).status());
  return checkRanks(plan, options, processes, ranks);
}

/// The step that --resume goes on from, if its newest checkpoint is good.
uint64_t stepToResume(const RunOptions &options) {
  if (options.resume.empty())
    return 0;
  std::string path =
      options.resume == "auto" ? options.checkpoint : options.resume;
  if (hasManifest(path)) {
    auto checkpoint = Checkpoint::open(path);
    return checkpoint.ok() ? (*checkpoint)->manifest().progress.step : 0;
  }
  auto found = findCheckpoints(path);
  return found.ok() && !found->complete.empty() ? found->complete[0].step : 0;
}
} // namespace

absl::StatusOr<std::vector<Phase>> phasesOf(const RunOptions &options) {
  std::vector<Phase> phases = {{options.plan, 0, options.steps}};
  for (const std::string &text : options.then) {
    size_t at = text.rfind('@');
    uint64_t step = 0;
    if (at == 0 || at == std::string::npos ||
        !absl::SimpleAtoi(text.substr(at + 1), &step))
      return usage("--then ", quote(text),
                   ", expected a plan and the step that it begins with, like "
                   "long.mwplan@9000");
    if (step <= phases.back().begin || step >= options.steps)
      return usage("--then ", quote(text), ": begins with step ", step,
                   ", expected more than ", phases.back().begin,
                   " and less than --steps, which is ", options.steps);
    phases.back().end = step;
    phases.push_back({text.substr(0, at), step, options.steps});
  }
  return phases;
}

absl::Status openPhases(std::vector<Phase> &phases, const RunOptions &options,
                        const Processes &processes) {
  const Phase *before = nullptr;
  for (Phase &phase : phases) {
    absl::Status status = openPhase(phase, processes);
    if (status.ok())
      status = processes.agreeOn(*phase.file, options);
    if (status.ok() && before)
      status = checkNext(phase.file->plan(), before->file->plan(), options,
                         processes);
    if (!status.ok())
      return before ? ofPlan(phase, status) : status;
    before = &phase;
  }
  return absl::OkStatus();
}

size_t firstPhase(const std::vector<Phase> &phases, const RunOptions &options) {
  uint64_t step = stepToResume(options);
  size_t number = 0;
  while (number + 1 < phases.size() && step >= phases[number].end)
    ++number;
  return number;
}

RunOptions optionsOf(const std::vector<Phase> &phases, size_t number,
                     size_t first, const RunOptions &options) {
  RunOptions one = options;
  one.plan = phases[number].plan;
  one.beginsWith = phases[number].begin;
  one.steps = phases[number].end;
  if (number > first) {
    one.resume = "auto";
    one.init.clear();
    one.followLinks = false;
  }
  if (number + 1 < phases.size())
    one.save.clear();
  return one;
}

} // namespace meshwork::runtime
