#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Simulate/Simulation.h"

namespace meshwork::simulate {
namespace {

std::string shareText(double share) {
  return absl::StrFormat("%.2f %%", 100 * share);
}

std::string lateText(const cost::Machine &machine, uint64_t ranks) {
  std::string text;
  if (machine.jitter > 0 && ranks > machine.ranksPerNode)
    absl::StrAppend(&text, "; all wait for the slowest node (nodes.jitter ",
                    machine.jitter, ")");
  if (machine.rankJitter > 0 && ranks > 1)
    absl::StrAppend(&text, "; all wait for the slowest rank (ranks.jitter ",
                    machine.rankJitter, ")");
  if (machine.expertLoad > 1)
    absl::StrAppend(&text, "; experts of one rank get ", machine.expertLoad,
                    " times the mean (experts.load)");
  return text;
}

std::string monthText(const Month &month, const cost::Machine &machine) {
  using explain::timeText;
  const TrainingRun &run = month.run;
  return absl::StrCat(
      "A month on ", month.nodes,
      month.nodes == 1 ? " node, which" : " nodes, each of which",
      " fails every ", machine.failureHours,
      " hours: ", absl::StrFormat("%.1f", month.failures), " failures\n",
      "  a checkpoint of ",
      explain::bytesText(
          static_cast<uint64_t>(std::min(month.checkpointBytes, 0x1p63))),
      " holds training up for ", timeText(run.copy), ", and is written in ",
      timeText(run.write),
      " beside it; after a failure the run trains again in ",
      timeText(run.restart + run.read), "\n", "  best: one each ",
      month.goodput.steps, " steps (",
      timeText(static_cast<double>(month.goodput.steps) * run.step),
      "); goodput ", shareText(month.goodput.share), ", ",
      explain::countText(month.steps), " steps, ",
      explain::countText(month.tokens), " tokens\n");
}
} // namespace

std::string text(const plan::Plan &plan, const Simulation &simulation) {
  const explain::WholeStep &whole = simulation.whole;
  std::string text = explain::textOf(whole);
  text.pop_back();
  if (simulation.hasCosts)
    absl::StrAppend(&text, "; actions of the pipeline take what --costs says");
  absl::StrAppend(&text, lateText(whole.machine, explain::numRanks(plan)),
                  "\n");
  double step = whole.estimate.step.seconds,
         planned = simulation.plannedSeconds;
  if (step != planned && planned > 0)
    absl::StrAppend(&text, "On the plan's own machine a step takes ",
                    explain::timeText(planned), ": here ",
                    absl::StrFormat("%.3g", step / planned),
                    " times as long\n");
  if (simulation.month)
    absl::StrAppend(&text, monthText(*simulation.month, whole.machine));
  else
    absl::StrAppend(&text, "Failures: none, the machine gives no "
                           "failures.hours and storage.bandwidth\n");
  return text;
}

} // namespace meshwork::simulate
