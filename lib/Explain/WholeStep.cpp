#include "lib/Explain/WholeStep.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Cost/PlanPeak.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::explain {
namespace {

std::string nameOf(const plan::Plan &plan, const cost::MovedOver &axes) {
  std::string text;
  for (uint32_t axis : axes)
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    clean(plan.mesh()->Get(axis)->name()));
  return text.empty() ? "host" : text;
}

uint64_t peakBytes(const plan::Plan &plan) {
  uint64_t most = 0;
  for (const plan::Program *program : *plan.programs())
    most = std::max(most, saturatingAdd(program->arena_bytes(),
                                        program->workspace_bytes_per_thread()));
  return most;
}

std::map<std::string, double> exposedOf(const plan::Plan &plan,
                                        const StepEstimate &estimate) {
  std::map<std::string, double> exposed;
  for (const auto &[axes, seconds] :
       estimate.programs[estimate.longest].exposed)
    exposed[nameOf(plan, axes)] += seconds;
  return exposed;
}

std::string exposedText(const std::map<std::string, double> &exposed) {
  std::string text;
  for (const auto &[axes, seconds] : exposed)
    if (seconds > 0)
      absl::StrAppend(&text, text.empty() ? "" : ", ", clean(axes), " ",
                      timeText(seconds));
  return absl::StrCat("; not hidden of what moves: ",
                      text.empty() ? "nothing" : text);
}

/// A part of something, as people read it.
std::string partText(double part) {
  return absl::StrFormat("%.1f %%", 100 * part);
}
} // namespace

std::optional<WholeStep> wholeStep(const plan::Plan &plan) {
  cost::MachineResult machine = machineOf(plan);
  if (!machine.machine)
    return std::nullopt;
  return wholeStep(plan, *machine.machine,
                   cost::machineNamedBy(plan).has_value());
}

WholeStep wholeStep(const plan::Plan &plan, const cost::Machine &machine,
                    bool hasPeak, const schedules::Costs *costs) {
  WholeStep whole;
  whole.machine = machine;
  whole.estimate =
      estimateStep(plan, whole.machine, cost::Ranks::threads, costs);
  const StepTime &step = whole.estimate.step;
  double tokens = static_cast<double>(plan.global_batch()) * plan.sequence();
  if (step.seconds > 0) {
    whole.tokensPerSecond = tokens / step.seconds;
    if (hasPeak)
      whole.mfu = plan.model_flops_per_step() / step.seconds /
                  (cost::peakTflopsOn(plan, machine) * 1e12);
  }
  whole.peakBytes = peakBytes(plan);
  whole.hostBytes = mostHostUse(plan).kept;
  if (!costs)
    whole.exposed = exposedOf(plan, whole.estimate);
  if (plan.programs()->size() < 2)
    whole.bubble = whole.idle = 0;
  else if (step.timeline) {
    whole.bubble = step.timeline->bubbleFraction;
    whole.idle = step.timeline->idleFraction;
  }
  return whole;
}

std::string wholeText(const plan::Plan &plan) {
  std::optional<WholeStep> whole = wholeStep(plan);
  if (!whole)
    return absl::StrCat("Estimate: none, the plan's machine is broken\n",
                        meshwork::textOf(machineOf(plan).diagnostics));
  return textOf(*whole);
}

std::string textOf(const WholeStep &whole) {
  std::string text = absl::StrCat(
      "Estimate on ", clean(whole.machine.name), ": ",
      timeText(whole.estimate.step.seconds), " a step, ",
      countText(whole.tokensPerSecond), " tokens/s",
      whole.mfu > 0 ? absl::StrCat(", MFU ", partText(whole.mfu)) : "", ", ",
      bytesText(whole.peakBytes), " a rank",
      whole.hostBytes > 0
          ? absl::StrCat(" and ", bytesText(whole.hostBytes), " of the host's")
          : "",
      ", bubble ", whole.bubble ? partText(*whole.bubble) : "not simulated");
  return absl::StrCat(text, whole.exposed ? exposedText(*whole.exposed) : "",
                      "\n");
}

} // namespace meshwork::explain
