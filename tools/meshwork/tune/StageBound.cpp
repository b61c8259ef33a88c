// Seconds of a pipeline, stage by stage.
#include "tools/meshwork/tune/BodyBound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace meshwork::tune {

/// Of what a sketch takes beyond its bodies, the part that is not sure.
constexpr double marginOfUnseen = 0.2;

/// Of a table that splits the backward pass. The body does not tell where. Both
/// parts have as many flops as the forward pass, at least. Beside these
/// gradients of weights are added up, and those of inputs go through attention.
/// So either may have what is left, or each a half.
static double leastOfSplits(const StepTable &table, schedules::Costs costs) {
  const std::vector<double> forward = costs.weightGrad, rest = costs.inputGrad;
  double least = std::numeric_limits<double>::infinity();
  for (double part : {0.0, 0.5, 1.0}) {
    for (size_t stage = 0; stage < rest.size(); ++stage) {
      double more = part * (rest[stage] - forward[stage]);
      costs.weightGrad[stage] = forward[stage] + more;
      costs.inputGrad[stage] = rest[stage] - more;
    }
    least = std::min(least, leastSeconds(table, costs));
  }
  return least;
}

/// By the schedule's table.
double BodyBound::ofLayers(const Choice &choice, const Body &body,
                           const StepTable &table, const Layers &layers) const {
  schedules::Costs costs = costsOf(choice, body, table, layers);
  return updateOfStages(choice, body, table, layers) +
         (table.of.splitsBackward ? leastOfSplits(table, costs)
                                  : leastSeconds(table, costs));
}

/// The fewest layers of a rank, by the most.
static double evenness(const StepTable &table,
                       const std::vector<int64_t> &layers) {
  std::map<int32_t, double> ofRanks;
  for (size_t stage = 0; stage < layers.size(); ++stage)
    ofRanks[table.of.table.rankOf[stage]] += static_cast<double>(layers[stage]);
  double fewest = std::numeric_limits<double>::infinity(), most = 0;
  for (auto [rank, many] : ofRanks) {
    fewest = std::min(fewest, many);
    most = std::max(most, many);
  }
  return fewest / most;
}

/// What a sketch takes beyond that, as it grows from one layer in each stage to
/// two, and on to the fewest of `layers`. Where there is no sketch of two, one
/// tells enough if stages have one layer or two. It may be what one rank does,
/// and another one with more layers may do the most here: so it counts less
/// where ranks have unequal numbers of layers.
double BodyBound::unseen(const Choice &choice, const Body &body,
                         const StepTable &table, const Sketch &sketch,
                         const Layers &layers) const {
  auto beyond = [&](int64_t each, double seconds) {
    return seconds -
           ofLayers(choice, body, table, Layers(table.of.layers.size(), each));
  };
  auto [least, most] = std::minmax_element(layers.begin(), layers.end());
  int64_t fewest = *least;
  if (sketch.secondsOfLayer == 0 && (fewest > 1 || *most > 2))
    return 0;
  double one = beyond(1, sketch.seconds), all = one;
  if (fewest > 1) {
    double two = beyond(2, sketch.seconds + sketch.secondsOfLayer);
    double more = static_cast<double>(fewest - 1) * (two - one);
    bool isAlone = choice.dataParallel() * choice.cp == 1;
    all += more > 0 && !isAlone ? ofLine(choice) * more : more;
  }
  return evenness(table, layers) *
         std::max(0.0, all - marginOfUnseen * std::max(one, all));
}

/// That the compiler should find for its stages, by bytes of their bodies.
std::optional<BodyBound::Layers>
BodyBound::layersOfBody(const Choice &choice, const Body &body,
                        const StepTable &table, const Sketch *sketch) const {
  StageMemory::Costs costs =
      bytesOf(choice, table, body.leastKept, body.splitKept, body.otherBytes);
  return layersOf(choice, table, [&](const Layers &some) {
    return bytesOfRanks(table, costs, sketch, some);
  });
}

double BodyBound::simulated(const Choice &choice, const Body &body,
                            const Sketch *sketch) {
  const StepTable *table = tableOf(choice);
  double quick = seconds(choice, body);
  if (!table || body.ofKinds.empty())
    return quick;
  std::optional<Layers> layers = layersOfBody(choice, body, *table, sketch);
  if (!layers)
    return std::numeric_limits<double>::infinity();
  double found = ofLayers(choice, body, *table, *layers);
  if (sketch)
    found += unseen(choice, body, *table, *sketch, *layers);
  return std::max(quick, found);
}

bool BodyBound::hasLayouts(const Choice &choice) {
  return limit > 0 && choice.pp > 1 && !given.isOpen &&
         stagesOf(choice) < static_cast<uint64_t>(facts.layers) &&
         tableOf(choice);
}

double BodyBound::beyondBalanced(const Choice &choice, const Body &body,
                                 double seconds) {
  const StepTable *table = tableOf(choice);
  if (!table || body.ofKinds.empty())
    return 0;
  double beyond = seconds - ofLayers(choice, body, *table, table->of.layers);
  return (1 - marginOfUnseen) * std::max(0.0, beyond);
}

/// What balanced stages take beyond the body, others take in proportion to the
/// layers that are left to each stage.
double BodyBound::unbalanced(const Choice &choice, const Body &body,
                             const Costed &balanced) {
  const StepTable *table = tableOf(choice);
  if (!table || body.ofKinds.empty() ||
      balanced.bytesOfRanks.size() != choice.pp)
    return 0;
  StageMemory::Costs costs =
      bytesOf(choice, *table, body.leastKept, body.splitKept, body.otherBytes);
  std::optional<Layers> layers =
      layersOf(choice, *table, [&](const Layers &some) {
        return bytesBeside(*table, costs, balanced, some);
      });
  if (!layers)
    return std::numeric_limits<double>::infinity();
  double part = 1;
  for (size_t stage = 0; stage < layers->size(); ++stage)
    part = std::min(part, static_cast<double>((*layers)[stage]) /
                              static_cast<double>(table->of.layers[stage]));
  return ofLayers(choice, body, *table, *layers) +
         part * beyondBalanced(choice, body, balanced.seconds);
}

/// Where memory has no room for as many layers on each rank, some have more:
/// the work of one with most, all of its layers as fast as the fastest.
double BodyBound::ofFullest(const Choice &choice, const Body &body,
                            const StepTable &table) const {
  if (limit == 0)
    return 0;
  double most = memoryOf(choice, body, table)
                    .mostLayers(static_cast<double>(facts.layers),
                                static_cast<double>(limit));
  double least = std::numeric_limits<double>::infinity();
  for (const OfLayer &kind : body.ofKinds)
    if (kind.forward > 0)
      least = std::min(least, kind.forward + kind.backward);
  return std::isfinite(least)
             ? most * least * sureOf(choice, body) * bound.microbatches(choice)
             : 0;
}

/// What the layers of each stage take together, which follow one another.
std::vector<OfLayer> BodyBound::ofStages(const Body &body,
                                         const Layers &layers) const {
  std::vector<OfLayer> stages(layers.size());
  auto kind = facts.kindOfLayer.begin();
  for (size_t stage = 0; stage < stages.size(); ++stage)
    for (int64_t layer = 0; layer < layers[stage]; ++layer, ++kind) {
      const OfLayer &one = body.ofKinds[*kind];
      stages[stage].forward += one.forward;
      stages[stage].backward += one.backward;
      stages[stage].update += one.update;
    }
  return stages;
}

/// Of what a stage hands to the next for a microbatch: each rank its part.
double BodyBound::transferOf(const Choice &choice) const {
  cost::Times times(machine, meshOf(choice));
  double parts = double{1} * choice.cp * choice.tp;
  return times.transfer(
      facts.crossing * choice.micro * bytesOfActivation / parts, 0);
}

/// Each stage its layers; the first one what comes before them, the last one
/// the head.
schedules::Costs BodyBound::costsOf(const Choice &choice, const Body &body,
                                    const StepTable &table,
                                    const Layers &layers) const {
  std::vector<OfLayer> stages = ofStages(body, layers);
  double before = body.forward, head = body.backward;
  for (const OfLayer &stage : ofStages(body, table.of.layers)) {
    before -= stage.forward;
    head -= stage.backward;
  }
  double sure = sureOf(choice, body);
  std::vector<double> none(stages.size(), 0);
  schedules::Costs costs{none, none, none, none, none};
  costs.transfer.assign(stages.size(), transferOf(choice));
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    Moved moved = movedOf(choice, static_cast<double>(layers[stage]));
    double forward =
        stages[stage].forward + (stage == 0 ? std::max(before, 0.0) : 0);
    double backward = stages[stage].backward +
                      (stage + 1 == stages.size() ? std::max(head, 0.0) : 0);
    costs.forward[stage] =
        besides(moved.takesCores, sure * forward, moved.forward);
    double whole = meanBackward(choice, moved, sure * backward);
    costs.backward[stage] = table.of.splitsBackward ? 0 : whole;
    costs.weightGrad[stage] = std::min(stages[stage].forward, whole / 2);
    costs.inputGrad[stage] = whole - costs.weightGrad[stage];
  }
  return costs;
}

double BodyBound::updateOfStages(const Choice &choice, const Body &body,
                                 const StepTable &table,
                                 const Layers &layers) const {
  std::vector<OfLayer> stages = ofStages(body, layers);
  std::vector<double> ofRank(choice.pp, 0), updates(choice.pp, 0);
  for (size_t stage = 0; stage < layers.size(); ++stage) {
    ofRank[table.of.table.rankOf[stage]] += static_cast<double>(layers[stage]);
    updates[table.of.table.rankOf[stage]] += stages[stage].update;
  }
  double most = 0;
  for (uint32_t rank = 0; rank < choice.pp; ++rank)
    most = std::max(
        most, updateOf(choice, movedOf(choice, ofRank[rank]), updates[rank]));
  return most;
}

} // namespace meshwork::tune
