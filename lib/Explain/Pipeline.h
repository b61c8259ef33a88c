// The stages of a plan: who does what when, by the tables of its programs.
#pragma once

#include "lib/Schedules/Simulate.h"
#include "meshwork/Plan/Plan.h"
#include <optional>
#include <string>

namespace meshwork::explain {

/// A plan whose programs are the ranks of a pipeline.
struct Pipeline {
  schedules::Table table; // of each coordinate along the pipeline's axis
  /// In unit times: F, I and W take 1, B takes 2, transfers nothing.
  schedules::Timeline timeline;
};

/// The table of a plan's stages. Nothing where there is one stage, or a table
/// that is too long to simulate.
std::optional<schedules::Table> stageTable(const plan::Plan &plan);
/// The same, simulated.
std::optional<Pipeline> pipelineOf(const plan::Plan &plan);

/// Parts of a pipeline's time, in unit times; 0 with one stage, nothing of a
/// table that is too long to simulate.
struct IdleTime {
  std::optional<double> bubble; // of the rank with the longest span
  std::optional<double> idle;   // of all ranks, from the first to the last work
};
IdleTime idleTime(const plan::Plan &plan);

/// Grid, bubble, and what each rank keeps; "" without stages.
std::string pipelineText(const plan::Plan &plan);

} // namespace meshwork::explain
