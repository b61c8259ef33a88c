#include "lib/Cost/PlanPeak.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Spec.h"

namespace meshwork::cost {

std::optional<Machine> machineNamedBy(const plan::Plan &plan) {
  spec::Result read =
      spec::parse(plan.spec() ? plan.spec()->str() : "", "plan");
  if (!read.spec || read.spec->machine.empty())
    return std::nullopt;
  return machineOfPlan(plan.spec()->str(), read.spec->device).machine;
}

double peakTflopsOf(const plan::Plan &plan) {
  std::optional<Machine> machine = machineNamedBy(plan);
  if (!machine)
    return 0;
  auto type =
      plan.compute() == plan::DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
  uint64_t ranks = 1;
  for (const plan::Axis *axis : *plan.mesh())
    ranks *= axis->size();
  return machine->peak[static_cast<size_t>(type)] * machine->share(ranks) *
         static_cast<double>(ranks) * 1e-12;
}

} // namespace meshwork::cost
