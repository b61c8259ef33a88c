// Seconds of a pipeline by what a stage between two others takes.
#include "tools/meshwork/tune/BodyBound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwork::tune {
namespace {

/// How far lists may lie below those of a sketch, which have the same layers,
/// and below the line through its two depths.
constexpr double marginOfLists = 0.003, marginOfMore = 0.01;
/// In how many parts the gradients of a layer travel alone, at least, that
/// shares so few with its neighbours that this does not count.
constexpr double manyParts = 4;
/// How much less that may be where it shares more.
constexpr double marginOfParts = 0.05;

/// Of one layer, of two, or beyond them of a part of what the line through
/// these adds.
double secondsOf(double one, double two, int64_t layers, double part) {
  if (layers <= 2)
    return (1 - marginOfLists) * (layers == 1 ? one : two);
  double more = part * static_cast<double>(layers - 2) * (two - one);
  return (1 - marginOfMore) * (two + more);
}
} // namespace

/// Of what one more layer adds to few of them, the part that it adds to many,
/// where gradients move. Small layers share what travels together with their
/// neighbours: each has fewer parts then.
double BodyBound::ofLine(const Choice &choice) const {
  double alone = 0;
  auto count = [&](double /*bytes*/, double many) { alone += many; };
  double bytes = std::min(bytesOfReduced(choice), bytesOfWeight),
         together = visitAlone(choice, 1, bytes, count) / bucketBytes;
  double parts = alone + std::ceil(together);
  return alone >= manyParts || parts == 0
             ? 1
             : (1 - marginOfParts) * (alone + together) / parts;
}

/// The first and the last stage have other work, too, which may hide what
/// moves. So what is known of their bodies stays, but for how it is split. What
/// else they have, like the head's, counts as gradients of weights: no stage
/// waits for these.
void BodyBound::takeLists(const InnerStage &inner, const Layers &layers,
                          bool splits, double part,
                          schedules::Costs &costs) const {
  const OfLists &one = inner.one, &two = inner.two;
  for (size_t stage = 0; stage < layers.size(); ++stage) {
    auto of = [&](double ofOne, double ofTwo) {
      return secondsOf(ofOne, ofTwo, layers[stage], part);
    };
    bool isInner = stage > 0 && stage + 1 < layers.size();
    if (isInner) {
      costs.forward[stage] =
          std::max(costs.forward[stage], of(one.forward, two.forward));
      costs.backward[stage] =
          std::max(costs.backward[stage], of(one.backward, two.backward));
    }
    if (splits) {
      double whole = costs.inputGrad[stage] + costs.weightGrad[stage];
      costs.inputGrad[stage] = of(one.inputGrad, two.inputGrad);
      costs.weightGrad[stage] = std::max(of(one.weightGrad, two.weightGrad),
                                         whole - costs.inputGrad[stage]);
    }
  }
}

double BodyBound::ofLists(const Choice &choice, const Body &body,
                          const InnerStage &inner) {
  const StepTable *table = tableOf(choice);
  if (!table || body.ofKinds.empty() || !inner.isKnown())
    return 0;
  std::optional<Layers> layers = layersOfBody(choice, body, *table, nullptr);
  if (!layers)
    return std::numeric_limits<double>::infinity();
  double part = movesInLists(choice) ? ofLine(choice) : 1;
  bool splits = table->of.splitsBackward;
  if (splits && part < 1 && std::ranges::max(*layers) > 2)
    return 0; // Where it is split is not known.
  schedules::Costs costs = costsOf(choice, body, *table, *layers);
  takeLists(inner, *layers, splits, part, costs);
  return updateOfStages(choice, body, *table, *layers) +
         leastSeconds(*table, costs);
}

} // namespace meshwork::tune
