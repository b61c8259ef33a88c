#include "lib/Simulate/Simulation.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/SavedTensors.h"
#include "lib/Plan/Views.h"
#include <cmath>

namespace meshwork::simulate {
namespace {

/// Of all states that a checkpoint has, each once.
double checkpointBytes(const plan::Plan &plan) {
  double bytes = 0;
  for (const plan::SavedTensor &tensor : plan::savedTensors(plan)) {
    double elements = 1;
    for (int64_t size : plan::orEmpty(tensor.parameter->shape()))
      elements *= static_cast<double>(size);
    for (const plan::SavedState &state : tensor.states)
      bytes += elements * static_cast<double>(plan::bytesOf(state.dtype));
  }
  return bytes;
}

/// A rank's part of a checkpoint is copied before it is written: over the
/// host's link, or within the memory of a CPU, which reads and writes it.
double secondsOfCopy(const plan::Plan &plan, const cost::Machine &machine) {
  auto bytes = static_cast<double>(plan::mostSavedBytes(plan));
  return explain::timesOn(plan, machine, cost::Ranks::threads).hostCopy(bytes);
}

Month monthOf(const plan::Plan &plan, const cost::Machine &machine,
              double step) {
  Month month;
  uint64_t ranks = explain::numRanks(plan);
  month.nodes =
      ranks / machine.ranksPerNode + (ranks % machine.ranksPerNode != 0);
  month.checkpointBytes = checkpointBytes(plan);
  double moved = month.checkpointBytes / machine.storage;
  month.run = {step,
               secondsOfCopy(plan, machine),
               moved,
               moved,
               machine.restart,
               machine.failureHours * 3600 / static_cast<double>(month.nodes)};
  month.failures = monthHours * 3600 / month.run.failures;
  month.goodput = bestGoodput(month.run);
  month.steps = std::floor(month.goodput.share * monthHours * 3600 / step);
  month.tokens = month.steps * static_cast<double>(plan.global_batch()) *
                 static_cast<double>(plan.sequence());
  return month;
}
} // namespace

Simulation simulate(const plan::Plan &plan, const cost::Machine &machine,
                    bool isNamed, const schedules::Costs *costs) {
  Simulation result{explain::wholeStep(plan, machine, isNamed, costs),
                    costs != nullptr,
                    0,
                    {}};
  double step = result.whole.estimate.step.seconds;
  cost::MachineResult own = explain::machineOf(plan);
  if (own.machine == machine && !costs)
    result.plannedSeconds = step;
  else if (own.machine)
    result.plannedSeconds =
        explain::estimateStep(plan, *own.machine, cost::Ranks::threads)
            .step.seconds;
  if (machine.failureHours > 0 && step > 0)
    result.month = monthOf(plan, machine, step);
  return result;
}

} // namespace meshwork::simulate
