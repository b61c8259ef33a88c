#include "tools/meshwork/tune/Tables.h"

#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Live.h"
#include "lib/Schedules/Named.h"
#include "lib/Schedules/Simulate.h"
#include "passes/pipeline/Stages.h"

#include <algorithm>

namespace meshwork::tune {
namespace {
using schedules::Kind;

/// As many as fill the pipeline some times over; a multiple of the ranks away
/// from all of them, as interleaved schedules take them in rounds.
uint32_t shortened(uint32_t microbatches, uint32_t ranks) {
  uint64_t enough = uint64_t{6} * ranks;
  if (microbatches <= enough)
    return microbatches;
  return static_cast<uint32_t>(enough + (microbatches - enough) % ranks);
}

/// As the compiler takes it (passes/pipeline/Table.cpp): where some backward
/// passes are in two parts, all are.
bool splitBackward(schedules::Table &table) {
  auto isSplit = [](const schedules::Action &action) {
    return action.kind == Kind::weightGrad;
  };
  bool splits = std::any_of(
      table.ranks.begin(), table.ranks.end(), [&](const auto &rank) {
        return std::any_of(rank.begin(), rank.end(), isSplit);
      });
  for (auto &rank : table.ranks) {
    std::vector<schedules::Action> all;
    for (schedules::Action action : rank) {
      action.withNext = false;
      bool isBoth = splits && action.kind == Kind::backward;
      all.push_back(action);
      if (!isBoth)
        continue;
      all.back().kind = Kind::inputGrad;
      all.push_back({Kind::weightGrad, action.stage, action.microbatch});
    }
    rank = std::move(all);
  }
  return splits;
}

} // namespace

/// As the compiler does it, where memory suffices.
void Tables::shareLayers(StepTable &table) const {
  const std::vector<int32_t> &rankOf = table.table.rankOf;
  llvm::SmallVector<int64_t> balanced =
      pipeline::balance(flops, static_cast<int64_t>(rankOf.size()));
  table.layers.assign(balanced.begin(), balanced.end());
  std::vector<int64_t> ofRank(table.table.ranks.size(), 0);
  for (size_t stage = 0; stage < rankOf.size(); ++stage)
    ofRank[rankOf[stage]] += table.layers[stage];
  table.fewestLayers = *std::min_element(ofRank.begin(), ofRank.end());
}

/// A gradient of weights takes as long as a forward pass, a whole backward
/// pass as two.
static double waitsOf(const StepTable &table) {
  std::vector<double> one(table.table.rankOf.size(), 1),
      two(one.size(), table.splitsBackward ? 0 : 2), none(one.size(), 0);
  double ofRank = 3 * (table.microbatches + table.left) *
                  static_cast<double>(one.size() / table.table.ranks.size());
  return leastSeconds(table, {one, one, one, none, two}) / ofRank;
}

/// None where there is none.
std::unique_ptr<StepTable> Tables::make(const Choice &choice,
                                        uint32_t microbatches) const {
  uint32_t some = shortened(microbatches, choice.pp);
  absl::StatusOr<schedules::Table> table = schedules::generate(
      {.name = std::string(choice.schedule),
       .ranks = static_cast<int32_t>(choice.pp),
       .microbatches = static_cast<int32_t>(some),
       .virtualStages = static_cast<int32_t>(choice.virtualStages)});
  if (!table.ok() || table->rankOf.size() > flops.size())
    return nullptr;
  auto made = std::make_unique<StepTable>();
  made->table = *std::move(table);
  made->splitsBackward = splitBackward(made->table);
  schedules::LiveCount live(made->table.rankOf.size());
  for (const auto &rank : made->table.ranks)
    made->kept.push_back(live.ofRank(rank));
  made->microbatches = some;
  made->left = microbatches - some;
  shareLayers(*made);
  made->waits = std::max(1.0, waitsOf(*made));
  return made;
}

uint64_t stagesOf(const Choice &choice) {
  for (const schedules::NamedSchedule &named : schedules::namedSchedules())
    if (named.name == choice.schedule)
      return uint64_t{choice.pp} *
             (choice.virtualStages > 0
                  ? choice.virtualStages
                  : static_cast<uint32_t>(named.virtualStages));
  return 0;
}

const StepTable *Tables::of(const Choice &choice, uint32_t microbatches) {
  auto [at, isNew] = known.try_emplace(
      {choice.schedule, choice.pp, choice.virtualStages, microbatches});
  if (isNew && stagesOf(choice) <= flops.size())
    at->second = make(choice, microbatches);
  return at->second.get();
}

/// Each microbatch more takes the busiest rank as long as any before it.
double leastSeconds(const StepTable &table, const schedules::Costs &costs) {
  auto timeline = schedules::simulate(table.table, costs);
  if (!timeline.ok())
    return 0;
  double busiest = 0;
  for (const schedules::Timeline::Work &rank : timeline->ranks)
    busiest = std::max(busiest, rank.busy);
  return timeline->makespan + table.left * busiest / table.microbatches;
}

} // namespace meshwork::tune
