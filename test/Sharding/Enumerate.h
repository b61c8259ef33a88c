// Every sharding of a tensor on a small mesh.
#pragma once

#include "lib/Sharding/Sharding.h"

namespace meshwork::sharding::test {

/// Each axis on a dim at any place, replicated or partial.
std::vector<Sharding> allShardings(const Mesh &mesh, size_t numDims,
                                   Reduction reduction = Reduction::sum);

} // namespace meshwork::sharding::test
