#include "tools/meshwork/tune/StageMemory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwork::tune {

StageMemory::StageMemory(const StepTable &table, Costs costs)
    : rankOfHead(static_cast<size_t>(table.of.table.rankOf.back())),
      ofHead(costs.ofHead) {
  const std::vector<int32_t> &alive = table.of.kept;
  double chunks = static_cast<double>(table.of.table.rankOf.size()) /
                  static_cast<double>(alive.size());
  for (int32_t microbatches : alive)
    ofLayer.push_back(costs.stored + costs.kept * microbatches / chunks);
}

/// Layers that ranks of `bytes` have room for, each at most `most`.
double StageMemory::placesFor(double most, double bytes) const {
  double places = 0;
  for (size_t rank = 0; rank < ofLayer.size(); ++rank) {
    double left = bytes - (rank == rankOfHead ? ofHead : 0);
    places += std::clamp(std::floor(left / ofLayer[rank]), 0.0, most);
  }
  return places;
}

double StageMemory::leastBytes(double layers) const {
  double none = 0, all = ofHead;
  for (double bytes : ofLayer)
    all += layers * bytes;
  while (all - none > 0.001 * all) {
    double between = (none + all) / 2;
    (placesFor(layers, between) < layers ? none : all) = between;
  }
  return none;
}

double StageMemory::mostLayers(double layers, double bytes) const {
  double most = std::ceil(layers / static_cast<double>(ofLayer.size()));
  for (; most <= layers; ++most)
    if (placesFor(most, bytes) >= layers)
      return most;
  return std::numeric_limits<double>::infinity();
}

} // namespace meshwork::tune
