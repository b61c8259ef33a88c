#include "tools/meshwork/tune/BodyBound.h"

#include "lib/Cost/OfSpec.h"

#include <algorithm>
#include <cmath>

namespace meshwork::tune {
namespace {

/// How far the work of a body may lie above that of the same layers in a plan,
/// because other things run beside it. Stages differ more: each has an end, and
/// its backward pass may be in two parts.
constexpr double margin = 0.003, marginOfStages = 0.01;
/// How much less than equal stages unequal ones may wait.
constexpr double marginOfWaits = 0.02;

double marginOf(const Choice &choice) {
  return choice.pp > 1 ? marginOfStages : margin;
}

/// Those of them that the mesh of a choice has.
std::vector<uint32_t> numbersOf(const Choice &choice,
                                std::initializer_list<uint32_t Choice::*> all) {
  std::vector<uint32_t> axes;
  for (auto axis : all)
    if (choice.*axis > 1)
      axes.push_back(numberOf(axis));
  return axes;
}

/// Of meshOf(), what Choice::splitting() counts.
std::vector<uint32_t> splitAxes(const Choice &choice) {
  return numbersOf(
      choice, {choice.fsdp > 1 ? &Choice::fsdp : &Choice::dp, &Choice::cp});
}

/// All that have parts of the batch.
std::vector<uint32_t> dataAxes(const Choice &choice) {
  return numbersOf(choice,
                   {&Choice::dp, &Choice::fsdp, &Choice::ep, &Choice::cp});
}
} // namespace

double sureOf(const Choice &choice, const Body &body) {
  return body.seconds() > 0
             ? (1 - marginOf(choice)) * body.seconds(choice) / body.seconds()
             : 1;
}

BodyBound::BodyBound(const Bound &bound, const spec::Spec &spec,
                     const Facts &facts, Bound::Given given, uint64_t limit)
    : bound(bound), facts(facts), machine(cost::machineOf(spec)), given(given),
      limit(limit), bucketBytes(static_cast<double>(spec.overlap.bucketBytes)),
      tables(facts.flopsOfLayers) {
  bool isPlain = spec.zero.gradients == spec::GradientType::precision;
  bytesOfGradient = !isPlain ? 1 : spec.gradients == spec::Type::f32 ? 4 : 2;
  bytesOfSum = isPlain && !given.gradients ? 4 : bytesOfGradient;
  bytesOfActivation = spec.compute == spec::Type::f32 ? 4 : 2;
  bytesOfWeight =
      spec.zero.weights != spec::WeightType::compute ? 1 : bytesOfActivation;
}

/// Of a gradient's element on links. What is reduced in each microbatch is as
/// that computed it, what is reduced once as it was added up.
double BodyBound::bytesOfReduced(const Choice &choice) const {
  if (choice.sumsEach())
    return std::min(bytesOfGradient, bytesOfActivation);
  return bound.microbatches(choice) > 1 ? bytesOfSum : bytesOfGradient;
}

/// Of a rank with so many layers, or of all of the model; each collective as
/// one, since parts of it take no less. What is moved once a step for some axes
/// and for each use for others, as in a hierarchy, is left out.
BodyBound::Moved BodyBound::movedOf(const Choice &choice, double layers) const {
  Moved moved;
  std::vector<uint32_t> axes = splitAxes(choice);
  if (axes.empty() && !choice.offloads)
    return moved;
  using Kind = plan::CollectiveKind;
  cost::Times times(machine, meshOf(choice));
  double parameters =
      choice.pp > 1 ? layers * facts.leastOfLayer : facts.parameters;
  if (choice.offloads)
    addStates(choice, times, parameters, moved);
  if (axes.empty())
    return moved;
  moved.takesCores = times.takesCores(axes);
  parameters /= double{1} * choice.tp * choice.ep;
  addSums(times, choice, layers, parameters, axes, moved);
  if (choice.zeroStage == 1 || choice.zeroStage == 2) // weights go together
    moved.update += times.collective(
        Kind::all_gather,
        bytesOfWeight * parameters / double(times.ranksOf(axes)), axes);
  double gather =
      choice.zeroStage == 3 ? gathers(times, choice, layers, axes) : 0;
  if (choice.gathered == "free" || choice.gathered == "keep")
    moved.forward += gather;
  if (choice.gathered == "free")
    moved.backward += gather;
  return moved;
}

/// Of a gradient, or of some together. With ZeRO each rank gets its part or,
/// where the ranks divide no dim, all of it. Over many ranks either may take
/// less.
double BodyBound::secondsOfSum(const cost::Times &times, const Choice &choice,
                               double bytes,
                               const std::vector<uint32_t> &axes) const {
  auto with = [&](plan::CollectiveKind kind) {
    return times.collective(kind, bytes, axes);
  };
  if (choice.zeroStage == 0)
    return with(plan::CollectiveKind::all_reduce);
  double parts = with(plan::CollectiveKind::reduce_scatter);
  auto ranks = times.ranksOf(axes) * choice.tp * choice.ep;
  bool isDivided = facts.dimOfAll % static_cast<int64_t>(ranks) == 0;
  return isDivided ? parts
                   : std::min(parts, with(plan::CollectiveKind::all_reduce));
}

/// Of gradients, and of the loss, which comes after all of them.
void BodyBound::addSums(const cost::Times &times, const Choice &choice,
                        double layers, double parameters,
                        const std::vector<uint32_t> &axes, Moved &moved) const {
  using Kind = plan::CollectiveKind;
  auto secondsOf = [&](double bytes) {
    return secondsOfSum(times, choice, bytes, axes);
  };
  double bytes = bytesOfReduced(choice) * parameters;
  double parts = partsOfSums(choice, layers, bytesOfReduced(choice));
  (choice.sumsEach() ? moved.backward : moved.last) =
      parts * secondsOf(bytes / parts);
  moved.lastTail = secondsOf(0);
  moved.update = times.collective(Kind::all_reduce, 0, dataAxes(choice));
  if (choice.fsdp > 1 && choice.dp > 1)
    addCopies(times, choice, bytes, moved);
  moved.tail = choice.pp == 1 || choice.sumsEach() ? moved.lastTail : 0;
}

/// Sums over copies of what ZeRO splits: of each part, once a step, when it is
/// summed over the parts. Others may run beside those, on other links.
void BodyBound::addCopies(const cost::Times &times, const Choice &choice,
                          double bytes, Moved &moved) const {
  constexpr uint32_t copies = numberOf(&Choice::dp);
  double seconds = times.collective(
      plan::CollectiveKind::all_reduce,
      bytes / static_cast<double>(choice.splitting()), {&copies, 1});
  moved.last = std::max(moved.last, seconds - moved.backward);
  if (!choice.sumsEach())
    moved.lastTail +=
        times.collective(plan::CollectiveKind::all_reduce, 0, {&copies, 1});
}

/// All states come from the host, and go back, while the update runs. Copies of
/// the two directions run side by side, unless they take cores.
void BodyBound::addStates(const Choice &choice, const cost::Times &times,
                          double parameters, Moved &moved) const {
  moved.states = times.hostCopy(bound.stateBytes(choice, parameters));
  if (times.hostCopyTakesCores())
    moved.states *= 2;
}

/// Tensors of a rank that fill a bucket each travel alone. Returns bytes of all
/// others, which travel together.
double BodyBound::visitAlone(const Choice &choice, double layers,
                             double bytesOfElement,
                             const UseOfTensors &use) const {
  double together = 0, copies = choice.pp > 1 ? layers : 1;
  for (auto [elements, count] :
       choice.pp > 1 ? facts.sizesOfLayer : facts.sizes) {
    double bytes =
        bytesOfElement * elements / (double{1} * choice.tp * choice.ep);
    double many = copies * static_cast<double>(count);
    if (bytes < bucketBytes)
      together += many * bytes;
    else
      use(bytes, many);
  }
  return together;
}

/// In which all gradients of a rank are summed. At the end of a step no more
/// than one counts for a layer.
double BodyBound::partsOfSums(const Choice &choice, double layers,
                              double bytesOfElement) const {
  double alone = 0;
  double together =
      visitAlone(choice, layers, bytesOfElement,
                 [&](double /*bytes*/, double many) { alone += many; });
  double parts = std::max(1.0, alone + std::floor(together / bucketBytes));
  return choice.sumsEach() ? parts : std::min(parts, std::max(1.0, layers));
}

/// Weights before their use.
double BodyBound::gathers(const cost::Times &times, const Choice &choice,
                          double layers,
                          const std::vector<uint32_t> &axes) const {
  auto secondsOf = [&](double bytes) {
    return times.collective(plan::CollectiveKind::all_gather,
                            bytes / static_cast<double>(times.ranksOf(axes)),
                            axes);
  };
  double seconds = 0;
  double together =
      visitAlone(choice, layers, bytesOfWeight, [&](double bytes, double many) {
        seconds += many * secondsOf(bytes);
      });
  double buckets = std::max(1.0, std::floor(together / bucketBytes));
  return seconds + (together > 0 ? buckets * secondsOf(together / buckets) : 0);
}

double BodyBound::meanBackward(const Choice &choice, const Moved &moved,
                               double computing) const {
  auto with = [&](double moving, double tail) {
    return std::max(besides(moved.takesCores, computing, moving),
                    computing + tail);
  };
  double each = with(moved.backward, choice.sumsEach() ? moved.tail : 0),
         last = with(moved.backward + moved.last, moved.tail);
  return each + (last - each) / bound.microbatches(choice);
}

double BodyBound::updateOf(const Choice &choice, const Moved &moved,
                           double whole) const {
  double parts =
      choice.zeroStage > 0 ? static_cast<double>(choice.splitting()) : 1;
  return std::max(
      moved.states,
      besides(moved.takesCores, (1 - margin) * whole / parts, moved.update));
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
  bool isOnce = choice.pp > 1 || !choice.sumsEach(); // whichever rank is last
  beside.tails = moved.lastTail * (isOnce ? 1 : bound.microbatches(choice));
  beside.update = std::max(moved.update, moved.states);
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
  return std::max(together, computing + beside.tails) + beside.update;
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
              meanBackward(choice, moved, sure * body.backward)) +
      updateOf(choice, moved, body.update);
  return std::max(bound.seconds(choice), ofStep);
}

} // namespace meshwork::tune
