// Checking a request, and building steps on whole shardings. Private to this
// folder.
#pragma once

#include "lib/Sharding/Reshard.h"

namespace meshwork::sharding {

/// What is wrong with the input of planReshard, or an empty string.
std::string checkRequest(const Mesh &mesh, const std::vector<int64_t> &shape,
                         int64_t elementBytes, const Sharding &from,
                         const Sharding &to);

/// The ranks' groups of a permute: axes whose coordinate it may change.
std::vector<AxisId> permutedAxes(const Mesh &mesh, const Sharding &before,
                                 const Sharding &after);

/// Steps through the sharding that has all that differs replicated, one axis or
/// run of a layout at a time: reduce, gather, slice. Both sides normalized and
/// checked.
std::vector<Step> planThroughReplicated(const Mesh &mesh,
                                        const std::vector<int64_t> &shape,
                                        int64_t elementBytes,
                                        const Sharding &from,
                                        const Sharding &to);

} // namespace meshwork::sharding
