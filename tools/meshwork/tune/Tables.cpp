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
void Tables::shareLayers(BalancedTable &table) const {
  const std::vector<int32_t> &rankOf = table.table.rankOf;
  llvm::SmallVector<int64_t> balanced =
      pipeline::balance(flops, static_cast<int64_t>(rankOf.size()));
  table.layers.assign(balanced.begin(), balanced.end());
  std::vector<int64_t> ofRank(table.table.ranks.size(), 0);
  for (size_t stage = 0; stage < rankOf.size(); ++stage)
    ofRank[rankOf[stage]] += table.layers[stage];
  table.fewestLayers = *std::min_element(ofRank.begin(), ofRank.end());
}

double mostCopies(const BalancedTable &table, size_t rank,
                  const std::vector<int64_t> &layers) {
  std::vector<int32_t> alive(layers.size(), 0); // microbatches of each stage
  double now = 0, most = 0;
  for (const schedules::Action &action : table.table.ranks[rank]) {
    double copies = static_cast<double>(layers[action.stage]) *
                    table.copiesOfStage[action.stage];
    if (action.kind == Kind::forward && ++alive[action.stage] == 1)
      now += copies;
    most = std::max(most, now);
    bool isLast =
        action.kind == Kind::backward || action.kind == Kind::weightGrad;
    if (isLast && --alive[action.stage] == 0)
      now -= copies;
  }
  return most;
}

/// One layer in each stage needs `most`. Where that is of all stages together,
/// more layers need least in the stage that has the fewest copies.
static Copies copiesOf(const BalancedTable &table, size_t rank) {
  double all = 0, least = 0, stages = 0;
  for (size_t stage = 0; stage < table.copiesOfStage.size(); ++stage) {
    if (static_cast<size_t>(table.table.rankOf[stage]) != rank)
      continue;
    double own = table.copiesOfStage[stage];
    least = stages == 0 ? own : std::min(least, own);
    all += own;
    ++stages;
  }
  std::vector<int64_t> one(table.copiesOfStage.size(), 1);
  double most = mostCopies(table, rank, one);
  double ofLayer = most == all ? least : 0;
  return {most - stages * ofLayer, ofLayer, stages};
}

/// What LiveCount counts of each rank, and what follows from it.
static void addCopies(BalancedTable &table) {
  schedules::LiveCount live(table.table.rankOf.size());
  for (const auto &rank : table.table.ranks)
    live.ofRank(rank);
  table.copiesOfStage = live.ofStages();
  for (size_t rank = 0; rank < table.table.ranks.size(); ++rank)
    table.copies.push_back(copiesOf(table, rank));
}

/// A gradient of weights takes as long as a forward pass, a whole backward
/// pass as two.
static void timeUnits(BalancedTable &table) {
  std::vector<double> one(table.table.rankOf.size(), 1),
      two(one.size(), table.splitsBackward ? 0 : 2), none(one.size(), 0);
  schedules::Costs units{one, one, one, none, two};
  auto timeline = schedules::simulate(table.table, units);
  if (!timeline.ok())
    return;
  table.run.emplace(table.table);
  table.makespan = timeline->makespan;
  table.busiest = table.run->busiest(units);
}

std::unique_ptr<BalancedTable> Tables::make(const Choice &choice,
                                            uint32_t microbatches) const {
  absl::StatusOr<schedules::Table> table = schedules::generate(
      {.name = std::string(choice.schedule.text()),
       .ranks = static_cast<int32_t>(choice.pp),
       .microbatches = static_cast<int32_t>(microbatches),
       .virtualStages = static_cast<int32_t>(choice.virtualStages)});
  if (!table.ok() || table->rankOf.size() > flops.size())
    return nullptr;
  auto made = std::make_unique<BalancedTable>();
  made->table = *std::move(table);
  made->microbatches = microbatches;
  made->splitsBackward = splitBackward(made->table);
  addCopies(*made);
  shareLayers(*made);
  timeUnits(*made);
  return made;
}

uint64_t stagesOf(const Choice &choice) {
  const auto *named = schedules::findNamed(choice.schedule.text());
  uint32_t each = choice.virtualStages;
  if (each == 0 && named)
    each = static_cast<uint32_t>(named->virtualStages);
  return named ? uint64_t{choice.pp} * each : 0;
}

const BalancedTable *Tables::balanced(const Choice &choice,
                                      uint32_t microbatches) {
  auto [at, isNew] = tables.try_emplace(
      {choice.schedule, choice.pp, choice.virtualStages, microbatches});
  if (isNew && stagesOf(choice) <= flops.size())
    at->second = make(choice, microbatches);
  return at->second.get();
}

static double secondsWith(const BalancedTable &table, double left,
                          double makespan, double busiest) {
  return makespan + left * busiest / table.microbatches;
}

const StepTable *Tables::of(const Choice &choice, uint32_t microbatches) {
  auto [at, isNew] = known.try_emplace(
      {choice.schedule, choice.pp, choice.virtualStages, microbatches});
  uint32_t some = shortened(microbatches, choice.pp);
  const BalancedTable *table = isNew ? balanced(choice, some) : nullptr;
  if (table) {
    double left = microbatches - some;
    double ofRank = 3.0 * microbatches *
                    static_cast<double>(table->layers.size() / choice.pp);
    double seconds = secondsWith(*table, left, table->makespan, table->busiest);
    at->second.emplace(*table, left, std::max(1.0, seconds / ofRank));
  }
  return at->second ? &*at->second : nullptr;
}

/// Each microbatch more takes the busiest rank as long as any before it.
double leastSeconds(const StepTable &table, const schedules::Costs &costs) {
  const auto &run = table.of.run;
  return run ? secondsWith(table.of, table.left, run->of(costs),
                           run->busiest(costs))
             : 0;
}

} // namespace meshwork::tune
