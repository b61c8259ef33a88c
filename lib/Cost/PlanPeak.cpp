#include "lib/Cost/PlanPeak.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Spec.h"

namespace meshwork::cost {

double peakTflopsOf(const plan::Plan &plan) {
  spec::Result read =
      spec::parse(plan.spec() ? plan.spec()->str() : "", "plan");
  if (!read.spec || read.spec->machine.empty())
    return 0;
  MachineResult machine = machineOfPlan(plan.spec()->str(), read.spec->device);
  if (!machine.machine)
    return 0;
  auto type =
      plan.compute() == plan::DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
  uint64_t ranks = read.spec->numRanks();
  return machine.machine->peak[static_cast<size_t>(type)] *
         machine.machine->share(ranks) * static_cast<double>(ranks) * 1e-12;
}

} // namespace meshwork::cost
