#include "tools/meshwork/tune/BodyBound.h"

#include "lib/Cost/OfSpec.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwork::tune {
namespace {

/// How far the work of a body may lie above that of the same layers in a plan,
/// because other things run beside it. Stages differ more: each has an end, and
/// its backward pass may be in two parts.
constexpr double margin = 0.003, marginOfStages = 0.01;
/// Of what a sketch takes beyond its bodies, the part that is not sure.
constexpr double marginOfUnseen = 0.2;
/// How much less than equal stages unequal ones may wait.
constexpr double marginOfWaits = 0.02;

double marginOf(const Choice &choice) {
  return choice.pp > 1 ? marginOfStages : margin;
}

/// The part of a body's seconds that a choice takes at least.
double sureOf(const Choice &choice, const Body &body) {
  return body.seconds() > 0
             ? (1 - marginOf(choice)) * body.seconds(choice) / body.seconds()
             : 1;
}

bool reducesOnce(const Choice &choice) {
  return choice.zeroStage < 2 || choice.reduce == "step";
}
} // namespace

BodyBound::BodyBound(const Bound &bound, const spec::Spec &spec,
                     const Facts &facts, Bound::Given given, uint64_t limit)
    : bound(bound), facts(facts), machine(cost::machineOf(spec)), given(given),
      limit(limit), bucketBytes(static_cast<double>(spec.overlap.bucketBytes)),
      tables(facts.flopsOfLayers) {
  bool isPlain = spec.zero.gradients == spec::GradientType::precision;
  bytesOfGradient = !isPlain ? 1 : spec.gradients == spec::Type::f32 ? 4 : 2;
  bytesOfSum = isPlain && !given.gradients ? 4 : bytesOfGradient;
  bytesOfWeight = spec.zero.weights != spec::WeightType::compute ? 1
                  : spec.compute == spec::Type::f32              ? 4
                                                                 : 2;
}

/// Of a rank with so many layers, or of all of the model; each collective as
/// one, since parts of it take no less. What is moved once a step for some axes
/// and for each use for others, as in a hierarchy, is left out.
BodyBound::Moved BodyBound::movedOf(const Choice &choice, double layers) const {
  Moved moved;
  std::vector<uint32_t> axes; // as below
  if (choice.dp > 1)
    axes.push_back(1);
  if (choice.cp > 1)
    axes.push_back(3);
  if (axes.empty())
    return moved;
  using Kind = plan::CollectiveKind;
  cost::Times times(machine,
                    {choice.pp, choice.dp, choice.ep, choice.cp, choice.tp});
  moved.takesCores = times.takesCores(axes);
  double parameters =
      (choice.pp > 1 ? layers * facts.leastOfLayer : facts.parameters) /
      (double{1} * choice.tp * choice.ep);
  double gradients =
      (bound.microbatches(choice) > 1 ? bytesOfSum : bytesOfGradient) *
      parameters;
  if (choice.zeroStage == 0)
    moved.last = collective(times, layers, Kind::all_reduce, gradients, axes);
  else
    (reducesOnce(choice) ? moved.last : moved.backward) =
        collective(times, layers, Kind::reduce_scatter, gradients, axes);
  if (choice.zeroStage == 1 || choice.zeroStage == 2)
    moved.update = collective(
        times, layers, Kind::all_gather,
        bytesOfWeight * parameters / double(times.ranksOf(axes)), axes);
  double gather =
      choice.zeroStage == 3 ? gathers(times, choice, layers, axes) : 0;
  if (choice.gathered == "free" || choice.gathered == "keep")
    moved.forward += gather;
  if (choice.gathered == "free")
    moved.backward += gather;
  return moved;
}

/// All that a rank has goes in parts, one for each layer at least, but for what
/// fits a bucket.
double BodyBound::collective(const cost::Times &times, double layers,
                             plan::CollectiveKind kind, double bytes,
                             const std::vector<uint32_t> &axes) const {
  double whole = kind == plan::CollectiveKind::all_gather
                     ? bytes * static_cast<double>(times.ranksOf(axes))
                     : bytes;
  double parts =
      std::clamp(std::floor(whole / bucketBytes), 1.0, std::max(1.0, layers));
  return parts * times.collective(kind, bytes / parts, axes);
}

/// Weights before their use: a parameter by itself, or several together where
/// they fit a bucket.
double BodyBound::gathers(const cost::Times &times, const Choice &choice,
                          double layers,
                          const std::vector<uint32_t> &axes) const {
  auto secondsOf = [&](double bytes) {
    return times.collective(plan::CollectiveKind::all_gather,
                            bytes / static_cast<double>(times.ranksOf(axes)),
                            axes);
  };
  double seconds = 0, small = 0;
  double copies = choice.pp > 1 ? layers : 1;
  for (auto [elements, count] :
       choice.pp > 1 ? facts.sizesOfLayer : facts.sizes) {
    double bytes =
        bytesOfWeight * elements / (double{1} * choice.tp * choice.ep);
    double many = copies * static_cast<double>(count);
    if (bytes < bucketBytes)
      small += many * bytes;
    else
      seconds += many * secondsOf(bytes);
  }
  double buckets = std::max(1.0, std::floor(small / bucketBytes));
  return seconds + (small > 0 ? buckets * secondsOf(small / buckets) : 0);
}

/// As lib/Cost/ListClock.h counts what is hidden.
double BodyBound::besides(bool takesCores, double computing,
                          double moving) const {
  if (takesCores)
    return computing + moving;
  return std::max(computing, moving) +
         std::min(machine.slowdown, 1.0) * std::min(computing, moving);
}

double BodyBound::meanBackward(const Moved &moved, double computing,
                               double microbatches) const {
  double each = besides(moved.takesCores, computing, moved.backward),
         last =
             besides(moved.takesCores, computing, moved.backward + moved.last);
  return each + (last - each) / microbatches;
}

double BodyBound::updateOf(const Choice &choice, const Moved &moved,
                           double whole) const {
  double parts = choice.zeroStage > 0 ? double{1} * choice.dp * choice.cp : 1;
  return besides(moved.takesCores, (1 - margin) * whole / parts, moved.update);
}

/// Null for what is no pipeline, or has no table with balanced stages.
const StepTable *BodyBound::tableOf(const Choice &choice) {
  return choice.pp == 1 || given.layers
             ? nullptr
             : tables.of(choice,
                         static_cast<uint32_t>(bound.microbatches(choice)));
}

/// Stages that layers make uneven wait for longer, though by a little less for
/// the first and last microbatches, where the last stage has the most work.
double BodyBound::waitsOf(const Choice &choice) {
  const StepTable *table = tableOf(choice);
  return table ? std::max(1.0, (1 - marginOfWaits) * table->waits) : 1;
}

/// Of a pipeline, what moves of the rank with the fewest layers.
BodyBound::Beside BodyBound::besideOf(const Choice &choice) {
  const StepTable *table = tableOf(choice);
  Beside beside{(1 - marginOf(choice)) * waitsOf(choice) * bound.global() /
                    static_cast<double>(choice.ranks()),
                0, 0, false, choice.pp > 1};
  if (choice.pp > 1 && !table)
    return beside;
  Moved moved =
      movedOf(choice, static_cast<double>(table ? table->of.fewestLayers
                                                : facts.layers));
  beside.moving =
      bound.microbatches(choice) * (moved.forward + moved.backward) +
      moved.last;
  beside.update = moved.update;
  beside.takesCores = moved.takesCores;
  return beside;
}

/// All microbatches together take no longer than each by itself: what is hidden
/// of the sums is no less than the sum of what is. That rank of a pipeline may
/// have less work than `rankSeconds` tells.
double BodyBound::seconds(const Beside &beside, double rankSeconds) const {
  double computing = beside.part * rankSeconds;
  double hidden = beside.takesCores ? 1 : std::min(machine.slowdown, 1.0);
  double together = beside.isPipeline
                        ? computing + hidden * beside.moving
                        : besides(beside.takesCores, computing, beside.moving);
  return together + beside.update;
}

double BodyBound::seconds(const Choice &choice, const Body &body) {
  if (choice.pp > 1) {
    double rankSeconds =
        body.seconds(choice) * choice.cp * choice.tp / choice.micro;
    const StepTable *table = tableOf(choice);
    return std::max({bound.seconds(choice),
                     seconds(besideOf(choice), rankSeconds),
                     table ? ofFullest(choice, body, *table) : 0});
  }
  Moved moved = movedOf(choice, static_cast<double>(facts.layers));
  double many = bound.microbatches(choice), sure = sureOf(choice, body);
  double ofStep =
      many * (besides(moved.takesCores, sure * body.forward, moved.forward) +
              meanBackward(moved, sure * body.backward, many)) +
      updateOf(choice, moved, body.update);
  return std::max(bound.seconds(choice), ofStep);
}

/// By the schedule's table.
double BodyBound::ofLayers(const Choice &choice, const Body &body,
                           const StepTable &table, const Layers &layers) const {
  return leastSeconds(table, costsOf(choice, body, table, layers)) +
         updateOfStages(choice, body, table, layers);
}

/// What a sketch takes beyond that, as it grows from one layer in each stage to
/// two, and on to `fewest`.
double BodyBound::unseen(const Choice &choice, const Body &body,
                         const StepTable &table, const Sketch &sketch,
                         int64_t fewest) const {
  auto beyond = [&](int64_t layers, double seconds) {
    return seconds - ofLayers(choice, body, table,
                              Layers(table.of.layers.size(), layers));
  };
  if (sketch.secondsOfLayer == 0)
    return 0;
  double one = beyond(1, sketch.seconds),
         two = beyond(2, sketch.seconds + sketch.secondsOfLayer),
         all = one + static_cast<double>(fewest - 1) * (two - one);
  return std::max(0.0, all - marginOfUnseen * std::max(one, all));
}

double BodyBound::simulated(const Choice &choice, const Body &body,
                            const Sketch *sketch) {
  const StepTable *table = tableOf(choice);
  double quick = seconds(choice, body);
  if (!table || body.ofKinds.empty())
    return quick;
  std::optional<Layers> layers = layersOf(choice, body, *table, sketch);
  if (!layers)
    return std::numeric_limits<double>::infinity();
  double found = ofLayers(choice, body, *table, *layers);
  if (sketch)
    found += unseen(choice, body, *table, *sketch,
                    *std::min_element(layers->begin(), layers->end()));
  return std::max(quick, found);
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

/// Each stage its layers; the first one what comes before them, the last one
/// the head. Gradients of weights take as long as the forward pass: they have
/// as many flops.
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
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    Moved moved = movedOf(choice, static_cast<double>(layers[stage]));
    double forward =
        stages[stage].forward + (stage == 0 ? std::max(before, 0.0) : 0);
    double backward = stages[stage].backward +
                      (stage + 1 == stages.size() ? std::max(head, 0.0) : 0);
    costs.forward[stage] =
        besides(moved.takesCores, sure * forward, moved.forward);
    double whole =
        meanBackward(moved, sure * backward, bound.microbatches(choice));
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
