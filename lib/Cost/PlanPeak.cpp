#include "lib/Cost/PlanPeak.h"

#include "lib/Cost/OfPlan.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Spec/Spec.h"

namespace meshwork::cost {

std::optional<Machine> machineNamedBy(const plan::Plan &plan) {
  spec::Result read =
      spec::parse(plan.spec() ? plan.spec()->str() : "", "plan");
  if (!read.spec || read.spec->machine.empty())
    return std::nullopt;
  return machineOfPlan(plan.spec()->str(), read.spec->device).machine;
}

namespace {
/// Flops of the products and the attention of a step.
struct Multiplied {
  double all = 0, inFloat8 = 0;
};

/// One run of a list, without repeats that data ask for.
void add(const plan::Program &program, uint32_t list, Multiplied &step) {
  const plan::Instructions &all = plan::listOf(program, list);
  plan::Repeats repeats = plan::repeatsOf(program, list);
  for (uint32_t i = 0; i < all.size(); ++i) {
    const plan::Instruction &one = *all.Get(i);
    if (const auto *repeat = one.op_as_Repeat();
        repeat && plan::isCounted(*repeat))
      i += repeat->instructions();
    Work work = workOf(program, one);
    if (work.kind == Work::kernel)
      continue;
    double flops = static_cast<double>(repeats.timesOf(i)) *
                   static_cast<double>(one.flops());
    step.all += flops;
    step.inFloat8 += work.type == Arithmetic::fp8 ? flops : 0;
  }
}

/// The part of them that multiplies 8 bits, of one rank of each program.
double partInFloat8(const plan::Plan &plan) {
  Multiplied step;
  for (const plan::Program *program : *plan.programs())
    for (const plan::Action &action : plan::actionsOf(*program))
      add(*program, action.list(), step);
  return step.all > 0 ? step.inFloat8 / step.all : 0;
}
} // namespace

double peakTflopsOf(const plan::Plan &plan) {
  std::optional<Machine> machine = machineNamedBy(plan);
  return machine ? peakTflopsOn(plan, *machine) : 0;
}

double peakTflopsOn(const plan::Plan &plan, const Machine &machine) {
  auto peakOf = [&](Arithmetic type) {
    return machine.peak[static_cast<size_t>(type)];
  };
  double part = partInFloat8(plan),
         others = peakOf(plan.compute() == plan::DType::bf16 ? Arithmetic::bf16
                                                             : Arithmetic::f32),
         peak = part > 0
                    ? 1 / (part / peakOf(Arithmetic::fp8) + (1 - part) / others)
                    : others;
  uint64_t ranks = 1;
  for (const plan::Axis *axis : *plan.mesh())
    ranks *= axis->size();
  return peak * machine.share(ranks) * static_cast<double>(ranks) * 1e-12;
}

} // namespace meshwork::cost
