#include "lib/Schedules/VirtualStages.h"

#include "lib/Schedules/CostFile.h"
#include "lib/Schedules/Simulate.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

/// Larger tables would take minutes to search.
constexpr int64_t mostForwards = int64_t{1} << 20;

bool areEven(const std::vector<double> &times, size_t count) {
  return std::all_of(times.begin(),
                     times.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](double time) { return time == times[0]; });
}

bool areEven(const Costs &costs) {
  size_t stages = costs.forward.size();
  return areEven(costs.forward, stages) && areEven(costs.inputGrad, stages) &&
         areEven(costs.weightGrad, stages) &&
         areEven(costs.transfer, stages - 1);
}

/// Of even ones: each stage in `parts`.
Costs split(const Costs &costs, int32_t parts) {
  size_t stages = costs.forward.size() * static_cast<size_t>(parts);
  auto each = [&](const std::vector<double> &times, double part) {
    return std::vector<double>(stages, times[0] / part);
  };
  return {each(costs.forward, parts), each(costs.inputGrad, parts),
          each(costs.weightGrad, parts), each(costs.transfer, 1)};
}

absl::StatusOr<Chosen> make(const Wanted &wanted, const Costs &costs,
                            int32_t virtualStages) {
  Wanted one = wanted;
  one.virtualStages = virtualStages;
  one.costs = virtualStages == 1 ? costs : split(costs, virtualStages);
  one.memory = wanted.memory * virtualStages;
  absl::StatusOr<Table> table = generate(one);
  if (!table.ok())
    return table.status();
  return Chosen{*std::move(table), std::move(one.costs), one.memory};
}
} // namespace

absl::StatusOr<Chosen> chooseVirtualStages(const Wanted &wanted) {
  Costs costs = wanted.costs.forward.empty() && wanted.ranks > 0
                    ? unitCosts(static_cast<size_t>(wanted.ranks))
                    : wanted.costs;
  absl::StatusOr<Chosen> best = make(wanted, costs, 1);
  if (!best.ok())
    return best;
  double end = simulate(best->table, best->costs)->makespan;
  int64_t forwards = int64_t{wanted.ranks} * wanted.microbatches;
  for (int32_t parts : {2, 4}) {
    if (!areEven(costs) || parts * forwards > mostForwards)
      break;
    absl::StatusOr<Chosen> next = make(wanted, costs, parts);
    if (!next.ok()) // one that keeps less was found before
      continue;
    double nextEnd = simulate(next->table, next->costs)->makespan;
    if (nextEnd < end * (1 - 1e-9)) {
      end = nextEnd;
      best = std::move(next);
    }
  }
  return best;
}

} // namespace meshwork::schedules
