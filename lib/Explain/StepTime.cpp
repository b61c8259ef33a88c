#include "lib/Explain/StepTime.h"
#include <algorithm>

namespace meshwork::explain {
namespace {

/// Of all that a rank runs in a step, or of what no stage does.
double sumOf(const RankWork &work, bool ofStages) {
  double sum = 0;
  for (const plan::Action &action : work.actions)
    if (ofStages || !plan::isOfMicrobatch(work.lists[action.list()].kind))
      sum += work.seconds[action.list()];
  return sum;
}

double longestSum(std::span<const RankWork> ranks, bool ofStages) {
  double longest = 0;
  for (const RankWork &work : ranks)
    longest = std::max(longest, sumOf(work, ofStages));
  return longest;
}

std::vector<double> secondsOf(const Estimate &estimate, size_t lists) {
  std::vector<double> seconds(lists, 0);
  for (const Estimate::OfList &list : estimate.lists)
    seconds[list.list] = list.seconds / static_cast<double>(list.runs);
  return seconds;
}
} // namespace

StepTime stepTime(std::span<const RankWork> ranks, int64_t microbatches,
                  const schedules::Costs *costs) {
  StepTime time;
  if (std::optional<schedules::Table> table = stageTable(ranks, microbatches)) {
    auto timeline = schedules::simulate(
        *table, costs ? *costs : costsOf(ranks, table->rankOf.size()));
    if (timeline.ok())
      time.timeline = *std::move(timeline);
  }
  time.seconds = longestSum(ranks, !time.timeline);
  if (time.timeline)
    time.seconds += time.timeline->makespan;
  return time;
}

StepTime stepTime(const plan::Plan &plan, const ListSeconds &seconds,
                  const schedules::Costs *costs) {
  return stepTime(workOfPlan(plan, seconds),
                  static_cast<int64_t>(plan.microbatches()), costs);
}

StepEstimate estimateStep(const plan::Plan &plan, const cost::Machine &machine,
                          cost::Ranks ranks, const schedules::Costs *costs) {
  StepEstimate result;
  ListSeconds seconds;
  for (const plan::Program *program : *plan.programs()) {
    Listing listing(*program);
    result.programs.push_back(
        estimate(plan, *program, listing, machine, ranks));
    seconds.push_back(
        secondsOf(result.programs.back(), listing.phases().size()));
    if (result.programs.back().seconds >
        result.programs[result.longest].seconds)
      result.longest = result.programs.size() - 1;
  }
  result.step = stepTime(plan, seconds, costs);
  return result;
}

} // namespace meshwork::explain
