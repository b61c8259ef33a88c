// A plan's step on a machine, be it the one that it was made for or another,
// and a month of such steps.
//
// One rank stands for all of a program: the cost does not depend on how many
// data-parallel ranks there are.
#pragma once

#include "absl/status/statusor.h"
#include "lib/Explain/WholeStep.h"
#include "lib/Simulate/Goodput.h"
#include <optional>
#include <string>

namespace meshwork::simulate {

/// Hours of a month.
inline constexpr double monthHours = 720;

/// Of a machine whose file has failures.hours and storage.bandwidth.
struct Month {
  uint64_t nodes = 0;
  double failures = 0;        // expected in a month, of all nodes
  double checkpointBytes = 0; // of all ranks together
  TrainingRun run;
  Goodput goodput;
  double steps = 0, tokens = 0; // that a month trains
};

struct Simulation {
  explain::WholeStep whole;
  bool hasCosts = false; // by which the pipeline's actions were simulated
  /// Of a step on the plan's own machine; 0 where that cannot be read.
  double plannedSeconds = 0;
  std::optional<Month> month;
};

/// `isNamed`: whether the user or the plan's spec named the machine, so that
/// MFU means something.
///   costs  seconds of the pipeline's actions, for each virtual stage, instead
///          of what they take on the machine; null: none
Simulation simulate(const plan::Plan &plan, const cost::Machine &machine,
                    bool isNamed, const schedules::Costs *costs = nullptr);

std::string text(const plan::Plan &plan, const Simulation &simulation);
std::string json(const plan::Plan &plan, const Simulation &simulation);

/// The most events of a trace.
inline constexpr uint64_t maxTraceEvents = uint64_t{1} << 20;

/// Not of a simulation with costs, which say nothing of instructions.
/// The step as `meshwork-run --trace` would write it, of one rank of each
/// program. Actions of a pipeline begin where the simulation has them.
/// Fails with invalidArgument where there would be too many events.
absl::StatusOr<std::string> trace(const plan::Plan &plan,
                                  const Simulation &simulation);

} // namespace meshwork::simulate
