// What [expect] promises, against the plan.
#pragma once

#include "lib/Spec/Spec.h"
#include "meshwork/Plan/Plan.h"
#include "tools/meshwork/driver/Model.h"

namespace meshwork::driver {

/// The whole message for a plan that needs more than cost::memoryLimit(spec).
/// First comes what lives when most does. Then come changes of the spec in the
/// order to try them, up to the first that fits, each compiled alone, with its
/// estimated time.
std::string memoryError(const plan::Plan &plan, const Model &model,
                        const spec::Spec &spec, uint64_t peakBytes);

/// Likewise for one that keeps more in the host's memory than
/// offload.host_memory_per_rank says.
std::string hostMemoryError(const plan::Plan &plan, const Model &model,
                            const spec::Spec &spec, uint64_t hostBytes);

} // namespace meshwork::driver
