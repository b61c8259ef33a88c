// How many layers the ranks of a pipeline may have. Each layer costs its rank
// what it stores. It also costs what it keeps of all microbatches that the
// schedule has under way there. The first stage has the embedding, the last one
// the head.
#pragma once

#include "tools/meshwork/tune/Tables.h"

#include <vector>

namespace meshwork::tune {

class StageMemory {
public:
  /// Bytes; `kept` of a layer for a microbatch.
  struct Costs {
    double stored = 0, kept = 0; // of each layer
    double ofFirst = 0;          // stored by the first stage beside its layers
    double ofHead = 0;           // stored by the last one, and at its peak
  };
  StageMemory(const StepTable &table, Costs costs);

  /// What each rank needs if stages have `layers`.
  static std::vector<uint64_t> bytesOfRanks(const StepTable &table,
                                            const Costs &costs,
                                            const std::vector<int64_t> &layers);

  /// The least bytes of a rank with which `layers` layers have a place.
  double leastBytes(double layers) const;
  /// A little less, but quick: layers are cut, and stages may have none.
  static double leastBytes(const StepTable &table, Costs costs, double layers);
  /// The layers of the rank with most, as even as `bytes` of a rank allow;
  /// infinite where they do not fit.
  double mostLayers(double layers, double bytes) const;

private:
  struct OfRank {
    double bytes = 0, ofLayer = 0; // in any case; of each layer
    double fewest = 0;             // layers: one for each stage
  };
  static OfRank ofRank(const StepTable &table, const Costs &costs, size_t rank);
  double placesFor(double most, double bytes) const;

  std::vector<OfRank> ranks;
};

} // namespace meshwork::tune
