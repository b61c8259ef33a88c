#include "tools/meshwork/tune/Bound.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Optimizer/Optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace meshwork::tune {
namespace {

double rateOf(const std::array<double, cost::numArithmetics> &rates,
              const spec::Spec &spec) {
  double rate = rates[static_cast<size_t>(spec.compute == spec::Type::f32
                                              ? cost::Arithmetic::f32
                                              : cost::Arithmetic::bf16)];
  return spec.fp8
             ? std::max(rate, rates[static_cast<size_t>(cost::Arithmetic::fp8)])
             : rate;
}

/// Elements of f32 that the optimizer keeps for a weight.
double momentsOf(const spec::Spec &spec) {
  const optimizer::Optimizer *kind = optimizer::find(spec.optimizer.kind);
  return kind
             ? static_cast<double>(kind->states(spec.optimizer.settings).size())
             : 0;
}
} // namespace

Bound::Bound(const spec::Spec &spec, const Facts &facts, Given given)
    : parameters(facts.parameters), ofStep(spec.batch.global) {
  cost::Machine machine = cost::machineOf(spec);
  double share = machine.share(spec.numRanks());
  double attention =
      std::max(rateOf(machine.attention, spec), rateOf(machine.gradient, spec));
  ofSequence = (facts.flops / rateOf(machine.flops, spec) +
                facts.attentionFlops / attention) /
               share;
  bool isMixed = spec.compute == spec::Type::bf16;
  weights = isMixed ? 2 : 4;
  bool isWhole = spec.zero.weights == spec::WeightType::compute;
  gathered = isWhole ? weights : 1;
  gradients = spec.gradients == spec::Type::f32 ? 4 : 2;
  sums = given.gradients ? gradients : 4;
  states = 4 * momentsOf(spec) + (isMixed ? 4 : 0);
}

/// Seconds of a step by those of a microbatch in all stages, at least. Each
/// stage has one forward and one backward of a microbatch. Stage k works m
/// times, and before and after that all stages below it work once. So the step
/// is shortest where all stages end together: stage k takes (1 - 1/m)^k of the
/// time of the first one.
static double timesOfPipeline(double microbatches, double stages) {
  return 1 / (1 - std::pow(1 - 1 / microbatches, stages));
}

double Bound::microbatches(const Choice &choice) const {
  return std::max(
      1.0, ofStep / static_cast<double>(choice.dataParallel() * choice.micro));
}

/// Of stages that take `ofMicrobatch` together. Those of the other schedules
/// are more than one on a rank, or split their backward pass.
double Bound::ofPipeline(const Choice &choice, double ofMicrobatch) const {
  double many = microbatches(choice), even = many * ofMicrobatch / choice.pp;
  Word schedule = choice.schedule;
  if (schedule != "1f1b" && schedule != "gpipe")
    return even;
  return std::max(even, ofMicrobatch * timesOfPipeline(many, choice.pp));
}

double Bound::seconds(const Choice &choice) const {
  double ranks = double{1} * choice.ep * choice.cp * choice.tp;
  return ofPipeline(choice, ofSequence * choice.micro * choice.ep / ranks);
}

double Bound::bytes(const Choice &choice) const {
  return storedBytes(choice, parameters / choice.pp);
}

double Bound::stateBytes(const Choice &choice, double some) const {
  double parts =
      choice.zeroStage > 0 ? static_cast<double>(choice.splitting()) : 1;
  return states * some / (double{1} * choice.tp * choice.ep) / parts;
}

double Bound::storedBytes(const Choice &choice, double some) const {
  double ofRank = some / (double{1} * choice.tp * choice.ep);
  auto parts = static_cast<double>(choice.splitting());
  auto of = [&](double bytes, int splitFrom) {
    return bytes * ofRank / (choice.zeroStage >= splitFrom ? parts : 1);
  };
  bool sumsWhole = choice.reduce == "step";
  double ofWeights =
      choice.gathered == "keep" ? of(gathered, 4) : of(weights, 3);
  return ofWeights + (choice.offloads ? 0 : stateBytes(choice, some)) +
         of(microbatches(choice) > 1 ? sums : gradients, sumsWhole ? 4 : 2);
}

} // namespace meshwork::tune
