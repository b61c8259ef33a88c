// What layers keep in the host's memory, and how long it takes to get there and
// back.
#pragma once

#include "lib/Cost/Times.h"
#include "tools/meshwork/tune/Choice.h"

#include <cstdint>
#include <map>

namespace meshwork::tune {

/// Tensors that a microbatch moves to the host's memory, by their bytes.
using ToHost = std::map<double, int64_t>;

/// Seconds of both, as lib/Cost/ListClock.h counts what is hidden.
double besides(const cost::Machine &machine, bool takesCores, double computing,
               double moving);

class HostTraffic {
public:
  ///   windowBytes  of offload.window
  HostTraffic(const cost::Machine &machine, double windowBytes)
      : machine(machine), leastBytes(windowBytes / 16) {}

  /// Seconds that a rank of `body` needs at least for a microbatch, which it
  /// computes in `computing`, by what was moved of another body. Tensors that
  /// may be too small here do not count.
  double seconds(double computing, const Choice &body, const ToHost &moved,
                 const Choice &from) const;

private:
  const cost::Machine machine;
  double leastBytes; // smaller ones stay on the device
};

} // namespace meshwork::tune
