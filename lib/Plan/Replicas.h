// Ranks that hold the same elements of a tensor: those that differ only along
// axes that its sharding does not name.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <vector>

namespace meshwork::plan {

/// The axes that split any dim, ascending.
std::vector<uint32_t> axesOf(const Sharded &sharded);
/// Whether ranks hold the same blocks by both, whatever the views.
bool sameSplit(const Sharded &a, const Sharded &b);

/// One of `count` ranks, by rank.
struct Replica {
  uint64_t index = 0, count = 1;
};

/// `rank` among those that have its coordinates along `named`, ascending, and
/// run a program that `holds`; it does itself. Programs along axes that none
/// depends on are not looked at one by one.
Replica replicaOf(const Plan &plan, uint32_t rank,
                  const std::vector<uint32_t> &named,
                  const std::vector<bool> &holds);

/// The lowest rank at the row-major position `choice` along Plan.program_axes.
uint32_t firstRankOf(const Plan &plan, uint64_t choice);

} // namespace meshwork::plan
