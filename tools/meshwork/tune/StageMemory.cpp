#include "tools/meshwork/tune/StageMemory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwork::tune {

/// Beside its layers.
static double besideLayers(const StepTable &table,
                           const StageMemory::Costs &costs, size_t rank) {
  const std::vector<int32_t> &rankOf = table.of.table.rankOf;
  auto isOn = [&](int32_t other) { return static_cast<size_t>(other) == rank; };
  return (isOn(rankOf.front()) ? costs.ofFirst : 0) +
         (isOn(rankOf.back()) ? costs.ofHead : 0);
}

StageMemory::OfRank StageMemory::ofRank(const StepTable &table,
                                        const Costs &costs, size_t rank) {
  const Copies &copies = table.of.copies[rank];
  return {besideLayers(table, costs, rank) + costs.kept * copies.inAnyCase,
          costs.stored + costs.kept * copies.ofLayer, copies.stages};
}

std::vector<uint64_t>
StageMemory::bytesOfRanks(const StepTable &table, const Costs &costs,
                          const std::vector<int64_t> &layers) {
  std::vector<double> bytes;
  for (size_t rank = 0; rank < table.of.copies.size(); ++rank)
    bytes.push_back(besideLayers(table, costs, rank) +
                    costs.kept * mostCopies(table.of, rank, layers));
  for (size_t stage = 0; stage < layers.size(); ++stage)
    bytes[table.of.table.rankOf[stage]] +=
        costs.stored * static_cast<double>(layers[stage]);
  return {bytes.begin(), bytes.end()};
}

StageMemory::StageMemory(const StepTable &table, Costs costs) {
  for (size_t rank = 0; rank < table.of.copies.size(); ++rank)
    ranks.push_back(ofRank(table, costs, rank));
}

/// Layers that ranks of `bytes` have room for, each at most `most`; 0 where one
/// has no room for its stages.
double StageMemory::placesFor(double most, double bytes) const {
  double places = 0;
  for (const OfRank &rank : ranks) {
    double room = std::floor((bytes - rank.bytes) / rank.ofLayer);
    if (room < rank.fewest)
      return 0;
    places += std::min(room, most);
  }
  return places;
}

double StageMemory::leastBytes(double layers) const {
  double none = 0, all = 0;
  for (const OfRank &rank : ranks)
    all += rank.bytes + layers * rank.ofLayer;
  while (all - none > 0.001 * all) {
    double between = (none + all) / 2;
    (placesFor(layers, between) < layers ? none : all) = between;
  }
  return none;
}

double StageMemory::leastBytes(const StepTable &table, Costs costs,
                               double layers) {
  double ofByte = 0; // layers
  for (size_t rank = 0; rank < table.of.copies.size(); ++rank) {
    OfRank one = ofRank(table, costs, rank);
    layers += one.bytes / one.ofLayer;
    ofByte += 1 / one.ofLayer;
  }
  return layers / ofByte;
}

double StageMemory::mostLayers(double layers, double bytes) const {
  double most = std::ceil(layers / static_cast<double>(ranks.size()));
  for (; most <= layers; ++most)
    if (placesFor(most, bytes) >= layers)
      return most;
  return std::numeric_limits<double>::infinity();
}

} // namespace meshwork::tune
