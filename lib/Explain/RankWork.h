// What the ranks of a step do in which order, whether a plan says it or the
// compiler, which has no plan yet.
#pragma once

#include "lib/Plan/Actions.h"
#include "lib/Schedules/Table.h"
#include <optional>

namespace meshwork::explain {

/// Of one coordinate along a pipeline's axis, or of all ranks.
struct RankWork {
  std::vector<plan::ListShape> lists;
  std::vector<plan::Action> actions;
  /// Of one run of each list, the mean of a step; empty where nobody asks.
  std::vector<double> seconds = {};
};

RankWork workOf(const plan::Program &program, std::vector<double> seconds = {});

/// In the order of the plan's program numbers; `seconds`, if given, by program,
/// then by list.
std::vector<RankWork>
workOfPlan(const plan::Plan &plan,
           const std::vector<std::vector<double>> &seconds = {});

/// The first rank of each of workOfPlan: of each coordinate along a pipeline's
/// axis, or rank 0 for all.
std::vector<uint64_t> firstRanks(const plan::Plan &plan);

/// The table of the stages. Nothing where there is one stage, or a table that
/// is too long to simulate.
std::optional<schedules::Table> stageTable(std::span<const RankWork> ranks,
                                           int64_t microbatches);

/// Virtual stages of stageTable(); 0 where there is none.
size_t numStages(const plan::Plan &plan);

/// What the actions of `stages` virtual stages take, by the lists that they
/// run.
schedules::Costs costsOf(std::span<const RankWork> ranks, size_t stages);

} // namespace meshwork::explain
