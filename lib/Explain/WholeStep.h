// What the whole plan should take, told alike wherever it is told: by explain,
// and by compile without code.
#pragma once

#include "lib/Explain/StepTime.h"
#include <string>

namespace meshwork::explain {

struct WholeStep {
  cost::Machine machine;
  StepEstimate estimate; // ranks of a node as threads of one process
  double tokensPerSecond = 0;
  double mfu = 0; // part of the peak of `machine`; 0 where the spec names none
  uint64_t peakBytes = 0; // of the rank that needs most
  uint64_t hostBytes = 0; // likewise, of the host's memory
  /// Of the rank with most to do, by axes ("dp", "host"): seconds in which it
  /// waits for what moves. Transfers between stages count in the bubble.
  /// Nothing where the pipeline's actions take what somebody says.
  std::optional<std::map<std::string, double>> exposed;
  /// As simulated; nothing of a table that is too long for that.
  std::optional<double> bubble, idle;
};

/// The machine's diagnostics are those of `machineOf`, without which there is
/// nothing.
std::optional<WholeStep> wholeStep(const plan::Plan &plan);
/// On another machine. `mfu` divides by its peak; `hasPeak`: whether anybody
/// named that machine. `costs` are those of stepTime.
WholeStep wholeStep(const plan::Plan &plan, const cost::Machine &machine,
                    bool hasPeak, const schedules::Costs *costs = nullptr);

/// One line: "Estimate on h100x8: 711 ms a step, ...".
std::string textOf(const WholeStep &whole);

} // namespace meshwork::explain
