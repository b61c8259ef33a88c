#include "lib/Explain/RankWork.h"
#include "lib/Explain/Listing.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Views.h"
#include "lib/Schedules/ListKinds.h"
#include <algorithm>
#include <map>
#include <utility>

namespace meshwork::explain {
namespace {

/// Longer tables are not simulated: 16 ranks of 4 stages with 8192 microbatches
/// have twice as many.
constexpr size_t mostActions = size_t{1} << 21;

/// One rank's actions; notes where its stages are.
std::vector<schedules::Action> actionsOf(const RankWork &work, int32_t rank,
                                         std::map<uint32_t, int32_t> &rankOf) {
  std::vector<schedules::Action> actions;
  for (const plan::Action &action : work.actions) {
    const plan::ListShape &list = work.lists[action.list()];
    std::optional<schedules::Kind> kind = schedules::kindOf(list.kind);
    if (!kind)
      continue;
    rankOf[list.stage] = rank;
    actions.push_back({*kind, static_cast<int32_t>(list.stage),
                       static_cast<int32_t>(action.microbatch())});
  }
  return actions;
}

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
} // namespace

RankWork workOf(const plan::Program &program, std::vector<double> seconds) {
  std::span<const plan::Action> actions = plan::actionsOf(program);
  return {plan::listsOf(program),
          {actions.begin(), actions.end()},
          std::move(seconds)};
}

std::vector<RankWork>
workOfPlan(const plan::Plan &plan,
           const std::vector<std::vector<double>> &seconds) {
  std::vector<RankWork> ranks;
  auto add = [&](uint32_t number) {
    ranks.push_back(
        workOf(*plan.programs()->Get(number),
               seconds.empty() ? std::vector<double>{} : seconds[number]));
  };
  if (plan.programs()->size() == 1) // Which all ranks run.
    add(0);
  else
    for (uint32_t number : plan::orEmpty(plan.program_numbers()))
      add(number);
  return ranks;
}

std::vector<uint64_t> firstRanks(const plan::Plan &plan) {
  if (plan.programs()->size() == 1)
    return {0};
  std::vector<uint64_t> ranks(plan.program_numbers()->size(), UINT64_MAX);
  for (uint64_t rank = 0; rank < numRanks(plan); ++rank) {
    uint64_t &first = ranks[plan::programIndex(plan, [&](uint32_t axis) {
      return plan::coordinateOf(plan, rank, axis);
    })];
    first = std::min(first, rank);
  }
  return ranks;
}

std::optional<schedules::Table> stageTable(std::span<const RankWork> ranks,
                                           int64_t microbatches) {
  size_t actions = 0;
  for (const RankWork &rank : ranks)
    actions += rank.actions.size();
  if (ranks.size() < 2 || actions > mostActions)
    return std::nullopt;
  schedules::Table table;
  std::map<uint32_t, int32_t> rankOf; // of virtual stages
  for (const RankWork &work : ranks) {
    auto rank = static_cast<int32_t>(table.ranks.size());
    table.ranks.push_back(actionsOf(work, rank, rankOf));
  }
  for (const auto &[stage, rank] : rankOf)
    table.rankOf.push_back(rank);
  table.microbatches = static_cast<int32_t>(microbatches);
  return table;
}

size_t numStages(const plan::Plan &plan) {
  std::optional<schedules::Table> table =
      stageTable(workOfPlan(plan), static_cast<int64_t>(plan.microbatches()));
  return table ? table->rankOf.size() : 0;
}

schedules::Costs costsOf(std::span<const RankWork> ranks, size_t stages) {
  std::vector<double> none(stages, 0);
  schedules::Costs costs{none, none, none, none, none};
  for (const RankWork &work : ranks)
    for (size_t list = 0; list < work.lists.size(); ++list)
      if (plan::isOfMicrobatch(work.lists[list].kind))
        addList(costs, work.lists[list], work.seconds[list]);
  return costs;
}

} // namespace meshwork::explain
