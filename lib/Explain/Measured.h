// A run's times beside the plan's: what `meshwork-run --trace` measured against
// what lib/Cost estimated and lib/Schedules simulated.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::explain {

/// All times in seconds.
struct Measured {
  struct Times {
    double planned = 0;
    double best = 0, median = 0;
  };
  /// A list of a program, one run of it; waiting for peers is left out.
  struct OfList {
    uint32_t program = 0;
    std::string name; // "forward of stage 2"
    uint64_t runs = 0;
    Times times;     // best: of all runs; median: over ranks and steps of a
                     // step's mean
    double wait = 0; // for peers, median
  };
  /// What a program moves over an axis in a step, by kind and phase.
  struct OfMoves {
    uint32_t program = 0;
    std::string kind, axis, phase;
    uint64_t count = 0;  // a step
    Times times;         // of a step, without waiting for peers
    double wait = 0;     // for peers, median of a step
    double isHidden = 0; // part of the time under way while the rank computed
  };
  uint64_t steps = 0; // that were counted
  bool skippedFirst = false;
  Times step;
  double simulatedStep = 0; // with the lists' own times
  /// Of a pipeline: from the first to the last action that computes, on the
  /// rank where that takes longest.
  struct Pipeline {
    Times span;
    double simulatedSpan = 0;
    double plannedBubble = 0, measuredBubble = 0, simulatedBubble = 0;
  };
  std::optional<Pipeline> pipeline;
  std::vector<OfList> lists;
  std::vector<OfMoves> moves;
  /// One action of a rank in one step, transfers left out; from the rank's own
  /// first instruction of the step, since clocks of ranks are not compared.
  struct Action {
    uint32_t list = 0, microbatch = 0;
    double begin = 0, end = 0;
    double wait = 0; // of it, for peers
  };
  struct Row {
    uint32_t rank = 0;
    std::vector<Action> actions;
  };
  /// A step of median length, as one rank of each coordinate along the
  /// pipeline's axis ran it.
  uint64_t typicalStep = 0;
  std::vector<Row> rows;
};

/// `trace` is the text of a trace of this plan; errors are those of readTrace
/// (Trace.h). Of several steps the first, which is slower, is left out.
absl::StatusOr<Measured> measured(const plan::Plan &plan,
                                  std::string_view trace);

/// Tables to read.
std::string text(const plan::Plan &plan, const Measured &measured);

/// A ratio of measured to planned; nothing where nothing was planned.
std::optional<double> ratioOf(const Measured::Times &times);

} // namespace meshwork::explain
