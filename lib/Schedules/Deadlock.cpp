#include "lib/Schedules/Deadlock.h"

#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Cycle.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

struct Row {
  std::string rank, position, action, waitsFor, why;
};

std::string draw(const std::vector<Row> &rows) {
  size_t wide[4] = {};
  for (const Row &row : rows) {
    size_t found[] = {row.rank.size(), row.position.size(), row.action.size(),
                      row.waitsFor.size()};
    for (size_t i = 0; i < 4; ++i)
      wide[i] = std::max(wide[i], found[i]);
  }
  std::string text;
  for (const Row &row : rows)
    absl::StrAppendFormat(&text, "\n  %*s  %*s  %-*s  %-*s  %s", wide[0],
                          row.rank, wide[1], row.position, wide[2], row.action,
                          wide[3], row.waitsFor, row.why);
  return text;
}

std::string tableOf(const Table &table, const Index &index,
                    const Cycle &cycle) {
  std::vector<Row> rows = {{"rank", "action", "", "waits for", "because it"}};
  for (const Cycle::Step &step : cycle.steps) {
    uint32_t rank = index.rankOf(step.action);
    uint32_t other = index.rankOf(step.waitsFor);
    std::string name = nameOf(table, index, step.waitsFor);
    rows.push_back(
        {absl::StrCat(rank), absl::StrCat(index.positionOf(step.action) + 1),
         nameOf(table, index, step.action),
         absl::StrCat(name, " of rank ", other), reasonOf(step.why)});
  }
  return draw(rows);
}

} // namespace

absl::Status checkDeadlock(const Table &table, const Index &index,
                           const JudgeOptions &options) {
  Waits waits(table, index,
              {.inOrder = options.transfersInOrder,
               .reuse = true,
               .copies = std::max(options.copies, 0)});
  std::vector<double> times = waits.times();
  if (std::find(times.begin(), times.end(), Waits::never) == times.end())
    return absl::OkStatus();
  Cycle cycle = shortestCycle(waits, times);
  return absl::InvalidArgumentError(absl::StrCat(
      "the table hangs: each of these waits for the next, the last for the "
      "first (",
      cycle.isShortest ? "the shortest such cycle" : "one such cycle", ")",
      tableOf(table, index, cycle)));
}

} // namespace meshwork::schedules
