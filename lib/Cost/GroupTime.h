// What a group of ranks takes to move something over the links of its nodes.
#ifndef MESHWORK_LIB_COST_GROUPTIME_H
#define MESHWORK_LIB_COST_GROUPTIME_H

#include "lib/Cost/Machine.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::cost {

/// Ranks that move something together.
struct Group {
  LinkClass link = LinkClass::withinNode; // the slowest that it crosses
  uint64_t ranks = 1;
  uint64_t inNode = 1; // of them, in each node that it spans
  uint64_t nodes() const { return (ranks + inNode - 1) / inNode; }
};

/// `sent` bytes by each rank. All groups of the mesh's other coordinates move
/// theirs at the same time, and share the adapters of their nodes.
double secondsOfMove(const Machine &machine, plan::CollectiveKind kind,
                     const Group &group, double sent);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_GROUPTIME_H
