#include "lib/Schedules/Lower.h"
#include "lib/Schedules/Index.h"
#include "lib/Schedules/LowerParts.h"

#include <algorithm>
#include <utility>

namespace meshwork::schedules {
namespace {

/// By place; of one place as they stand.
std::vector<const Addition *> inOrder(const std::vector<Addition> &additions) {
  std::vector<const Addition *> sorted;
  for (const Addition &addition : additions)
    sorted.push_back(&addition);
  std::ranges::sort(sorted, {}, [](const Addition *addition) {
    return std::pair(addition->before, addition);
  });
  return sorted;
}

void insert(const Additions &additions, Table &table) {
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    std::vector<Action> &row = table.ranks[rank], result;
    result.reserve(row.size() + additions[rank].size());
    std::vector<const Addition *> sorted = inOrder(additions[rank]);
    auto next = sorted.begin();
    for (size_t at = 0; at <= row.size(); ++at) {
      for (; next != sorted.end() && (*next)->before == at; ++next)
        result.push_back((*next)->action);
      if (at < row.size())
        result.push_back(row[at]);
    }
    row = std::move(result);
  }
}

bool hasTransfers(const Table &table) {
  return std::ranges::any_of(table.ranks, [](const auto &row) {
    return std::ranges::any_of(
        row, [](const Action &action) { return isTransfer(action.kind); });
  });
}

/// Costs under which nothing begins and ends at once, so that times tell the
/// order of a rank's actions. Transfers take time, too, however little. Else a
/// value may come just when its receiver turns to its next work, and its
/// receive is posted there. A value that is a little earlier then waits for the
/// work before. That cost 1.6 % of a step on average, 12 % at most (40 random
/// pipelines with other times than those of the plan). With any time from 0.003
/// to 0.2 of F it costs nothing.
Costs orderingCosts(const Costs &given, size_t stages) {
  constexpr double ofTransfer = 1.0 / 32;
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  if (given.forward.empty())
    return {all(1), all(1), all(1), all(ofTransfer)};
  Costs costs = given;
  double longest = 0;
  std::vector<double> *kinds[] = {&costs.forward, &costs.inputGrad,
                                  &costs.weightGrad, &costs.transfer};
  for (const std::vector<double> *times : kinds)
    for (double time : *times)
      longest = std::max(longest, time);
  double least = longest > 0 ? longest * 1e-6 : 1;
  for (std::vector<double> *times : kinds)
    for (double &time : *times)
      time = time < least ? least : time; // NaN stays, and is an error later
  return costs;
}

} // namespace

absl::StatusOr<Table> lower(const Table &table, const Costs &costs) {
  if (hasTransfers(table))
    return table;
  absl::StatusOr<Timeline> timeline =
      simulate(table, orderingCosts(costs, table.rankOf.size()));
  if (!timeline.ok())
    return timeline.status();
  Table result = table;
  insert(transfersOf(table, *timeline), result);
  return result;
}

} // namespace meshwork::schedules
