// What no plan of a choice can need less than, and whether it fits.
#include "tools/meshwork/driver/search/Layouts.h"
#include "tools/meshwork/tune/BodyBound.h"

#include <algorithm>
#include <limits>

namespace meshwork::tune {
namespace {

/// How far the bytes of a body may lie above those of the same layers in a
/// plan, whose buffers may fill other gaps.
constexpr double marginOfBytes = 0.03;
/// A sketch tells what a layer keeps with what it needs once for all
/// microbatches. With more of them that is less for each.
constexpr double marginOfSplit = 0.1;
/// And how much more they may fill, and steps take, where there are few layers.
constexpr double marginOfSketch = 0.02;
} // namespace

/// Whether sketches of ZB-H1 tell what it keeps. Most of what is computed
/// again, or was on the host, waits for the gradients of weights alone. Of how
/// many microbatches at a time, depends on the schedule.
static bool isToldBySketch(const Choice &choice) {
  return choice.schedule == "zb-h1" || choice.recompute == "none" ||
         choice.recompute == "selective";
}

double BodyBound::bytes(const Choice &choice, const Body &body) {
  if (choice.pp == 1)
    return bound.bytes(choice) +
           (1 - marginOfBytes) * (body.kept + body.otherBytes);
  const StepTable *table = tableOf(choice);
  return table ? std::max(bound.bytes(choice),
                          memoryOf(choice, body, *table)
                              .leastBytes(static_cast<double>(facts.layers)))
               : bound.bytes(choice);
}

StageMemory::Costs BodyBound::bytesOf(const Choice &choice,
                                      const StepTable &table,
                                      double keptOfLayer, double splitKept,
                                      double otherBytes) const {
  double kept = (1 - marginOfBytes) * keptOfLayer;
  if (table.of.splitsBackward && isToldBySketch(choice))
    kept = std::max(kept, (1 - marginOfSplit) * splitKept);
  return {bound.storedBytes(choice, facts.leastOfLayer), kept,
          bound.storedBytes(choice, facts.ofFirstStage),
          bound.storedBytes(choice, facts.ofLastStage) +
              (1 - marginOfBytes) * otherBytes};
}

StageMemory BodyBound::memoryOf(const Choice &choice, const Body &body,
                                const StepTable &table) const {
  return {table, bytesOf(choice, table, body.leastKept, body.splitKept,
                         body.otherBytes)};
}

double BodyBound::bytes(const Choice &choice, double keptOfLayer,
                        double splitKept) {
  auto all = static_cast<double>(facts.layers);
  if (choice.pp == 1)
    return bound.bytes(choice) + all * (1 - marginOfBytes) * keptOfLayer;
  const StepTable *table = tableOf(choice);
  return table ? std::max(bound.bytes(choice),
                          StageMemory::leastBytes(
                              *table,
                              bytesOf(choice, *table, keptOfLayer, splitKept),
                              all))
               : bound.bytes(choice);
}

double BodyBound::splitKept(const Choice &choice, const Sketch &sketch) {
  const StepTable *table = tableOf(choice);
  if (!table || !table->of.splitsBackward || sketch.ofLayer.size() != choice.pp)
    return 0;
  StageMemory::Costs none{}, stored = none, kept = none;
  stored.stored = bound.storedBytes(choice, facts.leastOfLayer);
  kept.kept = 1;
  Layers one(table->of.layers.size(), 1);
  auto storedBytes = StageMemory::bytesOfRanks(*table, stored, one),
       copies = StageMemory::bytesOfRanks(*table, kept, one);
  size_t most = std::max_element(copies.begin(), copies.end()) - copies.begin();
  return std::max(
      0.0, (sketch.ofLayer[most] - static_cast<double>(storedBytes[most])) /
               static_cast<double>(copies[most]));
}

/// A sketch tells of one layer in each stage. More layers need what their costs
/// tell, in the ratio of what the sketch tells of two.
std::vector<uint64_t> BodyBound::bytesOfRanks(const StepTable &table,
                                              const StageMemory::Costs &costs,
                                              const Sketch *sketch,
                                              const Layers &layers) const {
  auto bytesOf = [&](const Layers &some) {
    return StageMemory::bytesOfRanks(table, costs, some);
  };
  std::vector<uint64_t> bytes = bytesOf(layers);
  if (!sketch)
    return bytes;
  std::vector<uint64_t> one = bytesOf(Layers(layers.size(), 1)),
                        two = bytesOf(Layers(layers.size(), 2));
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    double more = static_cast<double>(bytes[rank] - one[rank]);
    if (sketch->ofLayer[rank] > 0)
      more *=
          sketch->ofLayer[rank] / static_cast<double>(two[rank] - one[rank]);
    bytes[rank] = static_cast<uint64_t>((1 - marginOfSketch) *
                                        (sketch->bytes[rank] + more));
  }
  return bytes;
}

/// What a rank with balanced stages needs is known. With more layers it needs
/// what their costs tell, with fewer no less than in proportion.
std::vector<uint64_t> BodyBound::bytesBeside(const StepTable &table,
                                             const StageMemory::Costs &costs,
                                             const Costed &balanced,
                                             const Layers &layers) const {
  std::vector<uint64_t> bytes = StageMemory::bytesOfRanks(table, costs, layers),
                        before = StageMemory::bytesOfRanks(table, costs,
                                                           table.of.layers);
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    double known = balanced.bytesOfRanks[rank],
           now = static_cast<double>(bytes[rank]),
           then = static_cast<double>(before[rank]);
    double told = std::min(known + now - then, known * now / then);
    bool isSame = bytes[rank] == before[rank];
    bytes[rank] =
        static_cast<uint64_t>(isSame ? known : (1 - marginOfSketch) * told);
  }
  return bytes;
}

/// As the compiler searches for them, by bytes that are no more than a plan's.
/// So it finds none with less work in the slowest stage. Nothing where none
/// fits.
std::optional<BodyBound::Layers>
BodyBound::layersOf(const Choice &choice, const StepTable &table,
                    const BytesOf &bytesOf) const {
  if (limit == 0)
    return table.of.layers;
  auto trialOf = [&](const Layers &layers) {
    driver::Trial trial;
    trial.bytesOfRanks = bytesOf(layers);
    trial.bytes =
        *std::max_element(trial.bytesOfRanks.begin(), trial.bytesOfRanks.end());
    return std::optional(trial);
  };
  driver::Layouts layouts(facts.flopsOfLayers, table.of.table.rankOf, choice.pp,
                          limit);
  auto best = layouts.search(*trialOf(layouts.balance()), trialOf);
  bool isFound = mlir::succeeded(best) && driver::fits(best->trial, limit);
  return isFound ? std::optional(best->way) : std::nullopt;
}

bool BodyBound::isCrowded(const Choice &choice, const Body &body,
                          const Sketch *sketch) {
  const StepTable *table = tableOf(choice);
  if (!table || limit == 0)
    return false;
  StageMemory::Costs costs =
      bytesOf(choice, *table, body.leastKept, body.splitKept, body.otherBytes);
  std::vector<uint64_t> bytes =
      bytesOfRanks(*table, costs, sketch, table->of.layers);
  return *std::max_element(bytes.begin(), bytes.end()) > limit;
}

double BodyBound::sketched(const Choice &choice, const Body &body,
                           const Sketch &sketch) {
  if (choice.pp > 1)
    return simulated(choice, body, &sketch);
  bool fits = limit == 0 || (1 - marginOfSketch) * sketch.bytes[0] <=
                                static_cast<double>(limit);
  return fits ? std::max(seconds(choice, body),
                         (1 - marginOfSketch) * sketch.seconds)
              : std::numeric_limits<double>::infinity();
}

double BodyBound::beyondBody(const Choice &choice, const Body &body,
                             const Sketch &sketch) {
  if (choice.pp == 1)
    return std::max(0.0, (1 - marginOfSketch) * sketch.seconds -
                             seconds(choice, body));
  const StepTable *table = tableOf(choice);
  if (!table || body.ofKinds.empty())
    return 0;
  const Layers &balanced = table->of.layers, one(balanced.size(), 1);
  return std::min(unseen(choice, body, *table, sketch, one),
                  unseen(choice, body, *table, sketch, balanced));
}

} // namespace meshwork::tune
