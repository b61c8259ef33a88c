// A step of all ranks together, from what each of their lists takes.
#pragma once

#include "lib/Explain/Estimate.h"
#include "lib/Explain/RankWork.h"
#include "lib/Schedules/Simulate.h"
#include <optional>
#include <vector>

namespace meshwork::explain {

/// Seconds of one run of a list: by program, then by list.
using ListSeconds = std::vector<std::vector<double>>;

struct StepTime {
  double seconds = 0;
  /// Of a pipeline: when its actions run. Nothing with one stage, or where the
  /// table is too long to simulate; `seconds` is then the longest sum of what
  /// a program runs.
  std::optional<schedules::Timeline> timeline;
};

/// The lists of a step; between what no stage does, those of a pipeline as
/// simulated, where transfers hold up nobody.
///   ranks  one for each coordinate along the pipeline's axis, with seconds
///   costs  seconds of the pipeline's actions, if not by its lists
StepTime stepTime(std::span<const RankWork> ranks, int64_t microbatches,
                  const schedules::Costs *costs = nullptr);
StepTime stepTime(const plan::Plan &plan, const ListSeconds &seconds,
                  const schedules::Costs *costs = nullptr);

/// What a plan should take on a machine.
struct StepEstimate {
  StepTime step;
  std::vector<Estimate> programs;
  size_t longest = 0; // the program with the most of its own to do
};

/// `costs` are those of stepTime.
StepEstimate estimateStep(const plan::Plan &plan, const cost::Machine &machine,
                          cost::Ranks ranks,
                          const schedules::Costs *costs = nullptr);

} // namespace meshwork::explain
