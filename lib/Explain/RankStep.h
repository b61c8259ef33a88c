// The events of a trace by rank and step: what each action took, and what of
// each movement between ranks the rank's own work hid. Internal to what
// measured times are worked out from.
#pragma once

#include "lib/Explain/Trace.h"

namespace meshwork::explain {

/// What one rank did in one step. Times in microseconds.
struct RankStep {
  uint32_t rank = 0;
  uint64_t step = 0;
  double begin = 0, end = 0;
  /// From its first to its last instruction, but for what channels run; of a
  /// transfer from where it is posted to where something needs it.
  struct Action {
    uint32_t list = 0, microbatch = 0;
    double begin = 0, end = 0;
    double wait = 0; // of it, for peers
    double work() const { return end - begin - wait; }
  };
  std::vector<Action> actions;
  /// A collective, or an end of a transfer.
  struct Move {
    uint32_t list = 0, instruction = 0;
    double time = 0, wait = 0;
    double hidden = 0; // of the time, beside the rank's own work
  };
  std::vector<Move> moves;
};

/// By rank, then by step.
std::vector<RankStep> rankSteps(const plan::Plan &plan,
                                std::vector<TraceEvent> events);

} // namespace meshwork::explain
