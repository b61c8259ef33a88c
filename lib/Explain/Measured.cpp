#include "lib/Explain/Measured.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/MeasuredMoves.h"
#include "lib/Explain/RankStep.h"
#include "lib/Explain/StepTime.h"
#include "lib/Plan/Programs.h"
#include "lib/Schedules/ListKinds.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>
#include <map>
#include <set>

namespace meshwork::explain {
namespace {
using Values = std::vector<double>;

bool isCompute(plan::ListKind list) {
  std::optional<schedules::Kind> kind = schedules::kindOf(list);
  return kind && schedules::isCompute(*kind);
}

absl::Status checkRanks(const plan::Plan &plan,
                        const std::vector<RankStep> &steps) {
  std::set<uint32_t> ranks;
  for (const RankStep &one : steps)
    ranks.insert(one.rank);
  if (ranks.size() == numRanks(plan))
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("holds events of ", ranks.size(), " of the plan's ",
                   counted(numRanks(plan), "rank"),
                   ", expected all: a part of a trace is missing"));
}

/// Leaves out the first of several steps; whether it did.
bool skipFirst(std::vector<RankStep> &steps) {
  std::set<uint64_t> numbers;
  for (const RankStep &one : steps)
    numbers.insert(one.step);
  if (numbers.size() < 2)
    return false;
  std::erase_if(
      steps, [&](const RankStep &one) { return one.step == *numbers.begin(); });
  return true;
}

/// What ranks of a program took for a list.
struct OfList {
  double best = 0; // of all runs, in microseconds
  Values means, waits;
};

std::map<uint32_t, OfList> listsOf(const RankStep &step) {
  std::map<uint32_t, OfList> lists;
  for (const RankStep::Action &action : step.actions) {
    auto [known, isNew] = lists.try_emplace(action.list);
    OfList &list = known->second;
    list.best = isNew ? action.work() : std::min(list.best, action.work());
    list.means.push_back(action.work());
    list.waits.push_back(action.wait);
  }
  for (auto &[number, list] : lists) {
    list.means = {meanOf(list.means)};
    list.waits = {meanOf(list.waits)};
  }
  return lists;
}

using Lists = std::map<std::pair<uint32_t, uint32_t>, OfList>;

/// By program and list.
Lists allLists(const plan::Plan &plan, const std::vector<RankStep> &steps) {
  Lists all;
  for (const RankStep &step : steps)
    for (auto &[number, list] : listsOf(step)) {
      auto [known, isNew] =
          all.try_emplace({plan::programOf(plan, step.rank), number});
      OfList &to = known->second;
      to.best = isNew ? list.best : std::min(to.best, list.best);
      to.means.push_back(list.means[0]);
      to.waits.push_back(list.waits[0]);
    }
  return all;
}

/// What a step is simulated with: what computes takes its median. A transfer
/// ends when something needs it, so only the quickest tells what moving takes,
/// and only on the side that receives.
double simulatedWith(const plan::ListShape &shape, const OfList &list) {
  return plan::sends(shape.kind)      ? 0
         : plan::receives(shape.kind) ? 1e-6 * list.best
                                      : 1e-6 * medianOf(list.means);
}

ListSeconds secondsOf(const plan::Plan &plan, const Lists &lists) {
  ListSeconds seconds;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    std::vector<plan::ListShape> shapes =
        plan::listsOf(*plan.programs()->Get(i));
    seconds.emplace_back(shapes.size(), 0);
    for (uint32_t list = 0; list < shapes.size(); ++list)
      if (auto found = lists.find({i, list}); found != lists.end())
        seconds[i][list] = simulatedWith(shapes[list], found->second);
  }
  return seconds;
}

void addLists(const plan::Plan &plan, const StepEstimate &planned,
              const Lists &lists, Measured &result) {
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    for (const Estimate::OfList &list : planned.programs[i].lists) {
      auto found = lists.find({i, list.list});
      if (found == lists.end())
        continue; // It has no instructions.
      result.lists.push_back(
          {i,
           list.name,
           list.runs,
           {list.seconds / static_cast<double>(list.runs),
            1e-6 * found->second.best, 1e-6 * medianOf(found->second.means)},
           1e-6 * medianOf(found->second.waits)});
    }
}

/// From the first to the last action that computes, and the part of it in which
/// none does.
struct Span {
  double time = 0, bubble = 0;
};
Span spanOf(const RankStep &step, const std::vector<plan::ListShape> &lists) {
  double begin = INFINITY, end = 0, work = 0;
  for (const RankStep::Action &action : step.actions)
    if (isCompute(lists[action.list].kind)) {
      begin = std::min(begin, action.begin);
      end = std::max(end, action.end);
      work += action.work();
    }
  if (!(end > begin))
    return {};
  return {end - begin, std::max(0.0, 1 - work / (end - begin))};
}

/// The longest of all ranks, step by step.
struct Steps {
  std::map<uint64_t, double> times;
  std::map<uint64_t, Span> spans;
};
Steps stepsOf(const plan::Plan &plan, const std::vector<RankStep> &all) {
  std::vector<std::vector<plan::ListShape>> lists;
  for (const plan::Program *program : *plan.programs())
    lists.push_back(plan::listsOf(*program));
  Steps steps;
  for (const RankStep &one : all) {
    double &time = steps.times[one.step];
    time = std::max(time, one.end - one.begin);
    Span span = spanOf(one, lists[plan::programOf(plan, one.rank)]);
    Span &longest = steps.spans[one.step];
    if (span.time > longest.time)
      longest = span;
  }
  return steps;
}

Measured::Times timesOf(double planned, const Values &us) {
  return {planned, 1e-6 * *std::min_element(us.begin(), us.end()),
          1e-6 * medianOf(us)};
}

Measured::Pipeline pipelineOf(const Steps &steps, const StepTime &planned,
                              const StepTime &simulated) {
  Values spans, bubbles;
  for (const auto &[step, span] : steps.spans) {
    spans.push_back(span.time);
    bubbles.push_back(span.bubble);
  }
  return {timesOf(planned.timeline->makespan, spans),
          simulated.timeline->makespan, planned.timeline->bubbleFraction,
          medianOf(bubbles), simulated.timeline->bubbleFraction};
}

/// The number of the step that takes the median of all.
uint64_t typicalOf(const Steps &steps) {
  std::vector<std::pair<double, uint64_t>> order;
  for (const auto &[step, time] : steps.times)
    order.emplace_back(time, step);
  std::sort(order.begin(), order.end());
  return order[order.size() / 2].second;
}

Measured::Row rowOf(const RankStep &step,
                    const std::vector<plan::ListShape> &lists) {
  Measured::Row row{step.rank, {}};
  for (const RankStep::Action &one : step.actions)
    if (plan::ListKind kind = lists[one.list].kind;
        isCompute(kind) || !plan::isOfMicrobatch(kind))
      row.actions.push_back({one.list, one.microbatch,
                             1e-6 * (one.begin - step.begin),
                             1e-6 * (one.end - step.begin), 1e-6 * one.wait});
  return row;
}

/// Of the ranks in `shown`, in their order.
std::vector<Measured::Row> rowsOf(const plan::Plan &plan, uint64_t step,
                                  const std::vector<uint64_t> &shown,
                                  const std::vector<RankStep> &all) {
  std::vector<Measured::Row> rows;
  for (uint64_t rank : shown)
    for (const RankStep &one : all)
      if (one.rank == rank && one.step == step)
        rows.push_back(rowOf(one, plan::listsOf(*plan.programs()->Get(
                                      plan::programOf(plan, rank)))));
  return rows;
}

Measured compare(const plan::Plan &plan, const cost::Machine &machine,
                 const std::vector<RankStep> &all) {
  Measured result;
  StepEstimate planned = estimateStep(plan, machine, cost::Ranks::threads);
  Lists lists = allLists(plan, all);
  StepTime simulated = stepTime(plan, secondsOf(plan, lists));
  Steps steps = stepsOf(plan, all);
  Values times;
  for (const auto &[step, time] : steps.times)
    times.push_back(time);
  result.steps = times.size();
  result.step = timesOf(planned.step.seconds, times);
  result.simulatedStep = simulated.seconds;
  if (planned.step.timeline && simulated.timeline)
    result.pipeline = pipelineOf(steps, planned.step, simulated);
  addLists(plan, planned, lists, result);
  result.moves = measuredMoves(plan, machine, all);
  result.typicalStep = typicalOf(steps);
  result.rows = rowsOf(plan, result.typicalStep, firstRanks(plan), all);
  return result;
}
} // namespace

absl::StatusOr<Measured> measured(const plan::Plan &plan,
                                  std::string_view trace) {
  cost::MachineResult machine = machineOf(plan);
  if (!machine.machine)
    return absl::DataLossError(
        absl::StrCat("the plan's machine is broken, so that nothing was "
                     "planned to compare with: ",
                     textOf(machine.diagnostics)));
  absl::StatusOr<std::vector<TraceEvent>> events = readTrace(trace, plan);
  if (!events.ok())
    return events.status();
  std::vector<RankStep> steps = rankSteps(plan, *std::move(events));
  if (absl::Status status = checkRanks(plan, steps); !status.ok())
    return status;
  bool skipped = skipFirst(steps);
  Measured result = compare(plan, *machine.machine, steps);
  result.skippedFirst = skipped;
  return result;
}

std::optional<double> ratioOf(const Measured::Times &times) {
  return times.planned > 0 ? std::optional(times.median / times.planned)
                           : std::nullopt;
}

} // namespace meshwork::explain
