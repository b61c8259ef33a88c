#include "lib/Explain/StepTime.h"
#include "lib/Explain/Pipeline.h"
#include "lib/Plan/Actions.h"
#include "lib/Schedules/ListKinds.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::explain {
namespace {

/// Where costs have the time of a list that computes.
std::vector<double> *workIn(schedules::Costs &costs, plan::ListKind kind) {
  switch (kind) {
  case plan::ListKind::forward:
    return &costs.forward;
  case plan::ListKind::backward:
    return &costs.backward;
  case plan::ListKind::input_grad:
    return &costs.inputGrad;
  case plan::ListKind::weight_grad:
    return &costs.weightGrad;
  default:
    return nullptr;
  }
}

/// The first of the two stages that a transfer joins.
size_t edgeOf(const plan::ListShape &list) {
  bool isFirst = list.kind == plan::ListKind::send ||
                 list.kind == plan::ListKind::recv_grad;
  return list.stage - (isFirst ? 0 : 1);
}

void addList(schedules::Costs &costs, const plan::ListShape &list,
             double seconds) {
  if (std::vector<double> *work = workIn(costs, list.kind))
    (*work)[list.stage] = seconds;
  else if (plan::sends(list.kind) || plan::receives(list.kind)) {
    double &edge = costs.transfer[edgeOf(list)];
    edge = std::max(edge, seconds);
  }
}

schedules::Costs costsOf(const plan::Plan &plan, size_t stages,
                         const ListSeconds &seconds) {
  std::vector<double> none(stages, 0);
  schedules::Costs costs{none, none, none, none, none};
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    std::vector<plan::ListShape> lists =
        plan::listsOf(*plan.programs()->Get(i));
    for (size_t list = 0; list < lists.size(); ++list)
      if (plan::isOfMicrobatch(lists[list].kind))
        addList(costs, lists[list], seconds[i][list]);
  }
  return costs;
}

/// Of all that a program runs in a step, or of what no stage does.
double sumOf(const plan::Program &program, const std::vector<double> &seconds,
             bool ofStages) {
  std::vector<plan::ListShape> lists = plan::listsOf(program);
  double sum = 0;
  for (const plan::Action &action : plan::actionsOf(program))
    if (ofStages || !plan::isOfMicrobatch(lists[action.list()].kind))
      sum += seconds[action.list()];
  return sum;
}

double longestSum(const plan::Plan &plan, const ListSeconds &seconds,
                  bool ofStages) {
  double longest = 0;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    longest = std::max(longest,
                       sumOf(*plan.programs()->Get(i), seconds[i], ofStages));
  return longest;
}

std::vector<double> secondsOf(const Estimate &estimate, size_t lists) {
  std::vector<double> seconds(lists, 0);
  for (const Estimate::OfList &list : estimate.lists)
    seconds[list.list] = list.seconds / static_cast<double>(list.runs);
  return seconds;
}
} // namespace

StepTime stepTime(const plan::Plan &plan, const ListSeconds &seconds) {
  StepTime time;
  if (std::optional<schedules::Table> table = stageTable(plan)) {
    auto timeline = schedules::simulate(
        *table, costsOf(plan, table->rankOf.size(), seconds));
    if (timeline.ok())
      time.timeline = *std::move(timeline);
  }
  time.seconds = longestSum(plan, seconds, !time.timeline);
  if (time.timeline)
    time.seconds += time.timeline->makespan;
  return time;
}

StepEstimate estimateStep(const plan::Plan &plan, const cost::Machine &machine,
                          cost::Ranks ranks) {
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
  result.step = stepTime(plan, seconds);
  return result;
}

} // namespace meshwork::explain
