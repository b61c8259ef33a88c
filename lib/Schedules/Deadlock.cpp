#include "lib/Schedules/Deadlock.h"

#include "lib/Plan/Circle.h"
#include "lib/Schedules/CostFile.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Live.h"
#include "lib/Schedules/Waits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

/// What starts together, as one: `0SEND_F1+0RECV_B0`.
std::string nameOf(const Table &table, const Index &index, uint32_t action) {
  uint32_t rank = index.rankOf(action), position = index.positionOf(action);
  const std::vector<Action> &actions = table.ranks[rank];
  std::string name = text(actions[position]);
  for (size_t i = position + 1; i < endOfGroup(actions, position); ++i)
    absl::StrAppend(&name, "+", text(actions[i]));
  return name;
}

const char *reasonOf(Why why) {
  switch (why) {
  case Why::order:
    return "stands after it";
  case Why::data:
    return "needs its result";
  case Why::matched:
    return "needs it to be posted";
  case Why::copy:
    return "needs the copy that it holds";
  }
  return "";
}

/// `action` waits for `waitsFor`.
struct Step {
  uint32_t action = 0, waitsFor = 0;
  Why why = Why::order;
};

/// The cycle may begin within a run of order.
void joinEnds(std::vector<Step> &steps) {
  if (steps.size() < 2 || steps.front().why != Why::order ||
      steps.back().why != Why::order)
    return;
  steps.front().action = steps.back().action;
  steps.pop_back();
}

/// From nodes to actions, runs of order on one rank to one step.
std::vector<Step> fold(const Waits &waits,
                       const plan::Circle<Waits::Wait> &circle) {
  std::vector<Step> steps;
  for (const auto &hop : circle.hops) {
    uint32_t waiter = waits.actionOf(hop.to), cause = waits.actionOf(hop.from);
    bool isOrder = !isWait(*hop.edge);
    if (waiter == cause && isOrder)
      continue;
    if (isOrder && !steps.empty() && steps.back().why == Why::order)
      steps.back().waitsFor = cause;
    else
      steps.push_back({waiter, cause, hop.edge->why});
  }
  joinEnds(steps);
  return steps;
}

std::vector<plan::CircleRow> rowsOf(const Table &table, const Index &index,
                                    const std::vector<Step> &steps) {
  std::vector<plan::CircleRow> rows;
  for (const Step &step : steps)
    rows.push_back({absl::StrCat(index.rankOf(step.action)),
                    absl::StrCat(index.positionOf(step.action) + 1),
                    nameOf(table, index, step.action),
                    absl::StrCat(nameOf(table, index, step.waitsFor),
                                 " of rank ", index.rankOf(step.waitsFor)),
                    reasonOf(step.why)});
  return rows;
}

} // namespace

absl::Status checkDeadlock(const Table &table, const Index &index,
                           const JudgeOptions &options) {
  Waits waits(table, index,
              {.inOrder = options.transfersInOrder,
               .reuse = true,
               .copies = std::max(options.copies, 0)});
  std::vector<double> times = waits.times(unitCosts(table.rankOf.size()));
  if (std::find(times.begin(), times.end(), Waits::never) == times.end())
    return absl::OkStatus();
  std::vector<bool> open(times.size());
  for (size_t node = 0; node < times.size(); ++node)
    open[node] = times[node] == Waits::never;
  auto circle = plan::shortestCircle(waits, std::move(open));
  return absl::InvalidArgumentError(absl::StrCat(
      "the table hangs: ",
      plan::circleText(circle.isShortest,
                       rowsOf(table, index, fold(waits, circle)))));
}

} // namespace meshwork::schedules
