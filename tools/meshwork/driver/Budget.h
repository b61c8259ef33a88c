// What [expect] promises, against the plan.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "tools/meshwork/driver/search/Micro.h"

namespace meshwork::driver {

/// What the user gave: advice goes out from that.
struct Asked {
  const std::string &model; // text in the transformer dialect
  spec::Spec spec;          // with all that is "auto" open
  SpecWith specWith;
};

/// The whole message for a plan that needs more than cost::memoryLimit(spec).
/// First comes what lives when most does, then advice (search/Advice.h).
std::string memoryError(const plan::Plan &plan, const spec::Spec &spec,
                        uint64_t peakBytes, const Asked &asked);

/// Likewise for one that keeps more in the host's memory than
/// offload.host_memory_per_rank says.
std::string hostMemoryError(const plan::Plan &plan, const spec::Spec &spec,
                            uint64_t hostBytes, const Asked &asked);

} // namespace meshwork::driver
