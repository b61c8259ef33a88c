// How many layers the ranks of a pipeline may have. Each layer costs its rank
// what it stores. It also costs what it keeps of all microbatches that the
// schedule has under way there. The rank with the last stage has the head, too.
#pragma once

#include "tools/meshwork/tune/Tables.h"

#include <vector>

namespace meshwork::tune {

class StageMemory {
public:
  /// Bytes; `kept` of a layer for a microbatch.
  struct Costs {
    double stored = 0, kept = 0; // of each layer
    double ofHead = 0;           // stored and at the peak
  };
  StageMemory(const StepTable &table, Costs costs);

  /// The least bytes of a rank with which `layers` layers have a place.
  double leastBytes(double layers) const;
  /// The layers of the rank with most, as even as `bytes` of a rank allow;
  /// infinite where they do not fit.
  double mostLayers(double layers, double bytes) const;

private:
  double placesFor(double most, double bytes) const;

  std::vector<double> ofLayer; // bytes, on each rank
  size_t rankOfHead;
  double ofHead;
};

} // namespace meshwork::tune
