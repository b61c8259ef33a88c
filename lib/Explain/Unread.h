// What a program stores and nothing reads: memory traffic for nothing.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <vector>

namespace meshwork::explain {

/// Buffers that some instruction writes and none reads. What outlives a step
/// and its results (the loss) are read by the launcher and do not count.
std::vector<const plan::Buffer *> unreadStores(const plan::Program &program);

} // namespace meshwork::explain
