#include "lib/Cost/GroupTime.h"

#include <algorithm>
#include <cmath>

namespace meshwork::cost {
namespace {
using plan::CollectiveKind;

/// Bytes a second out of a node by one group, which could use as many adapters
/// as `streams`. Other groups of the node have an even part of them.
double leavesNode(const Machine &machine, const Group &group,
                  uint64_t streams) {
  double bandwidth = machine.link(LinkClass::betweenNodes).bandwidth;
  if (machine.spine.nodes > 0 && group.nodes() > machine.spine.nodes)
    bandwidth *= machine.spine.share;
  if (machine.adapters == 0)
    return bandwidth;
  double adapters = machine.adapters, part = adapters *
                                             static_cast<double>(group.inNode) /
                                             machine.ranksPerNode;
  return bandwidth * std::min({static_cast<double>(streams), adapters, part});
}

/// Bytes a second that a rank sends. A ring goes through each node once, and
/// may be several rings, one through each adapter. In an all_to_all each rank
/// has its own bytes for other nodes.
double bandwidthOf(const Machine &machine, CollectiveKind kind,
                   const Group &group) {
  if (group.link != LinkClass::betweenNodes)
    return machine.link(group.link).bandwidth;
  if (machine.adapters == 0)
    return leavesNode(machine, group, 1);
  double inside = machine.link(LinkClass::withinNode).bandwidth;
  if (group.inNode == 1) // nothing of it moves within a node
    inside = HUGE_VAL;
  if (kind == CollectiveKind::permute)
    return std::min(inside, leavesNode(machine, group, 1));
  double out = leavesNode(machine, group, group.inNode);
  if (kind == CollectiveKind::all_to_all)
    out *= static_cast<double>(group.ranks - 1) /
           static_cast<double>((group.ranks - group.inNode) * group.inNode);
  return std::min(inside, out);
}

/// Beside the latency of the whole: a hop for each neighbour passed. A ring
/// passes all ranks; a tree, which only sums take, as many nodes as it is deep,
/// up and down.
double secondsOfHops(const Machine &machine, CollectiveKind kind,
                     const Group &group) {
  double inner = machine.link(LinkClass::withinNode).hop,
         outer = machine.link(LinkClass::betweenNodes).hop;
  if (group.link == LinkClass::inProcess)
    inner = machine.link(LinkClass::inProcess).hop;
  auto ranks = static_cast<double>(group.ranks),
       inNode = static_cast<double>(group.inNode),
       nodes = static_cast<double>(group.nodes());
  if (kind == CollectiveKind::permute)
    return nodes > 1 ? outer : inner;
  double ring = std::max(0.0, ranks - nodes) * inner + (nodes - 1) * outer;
  if (kind != CollectiveKind::all_reduce)
    return ring;
  double tree = (inNode - 1) * inner + std::ceil(std::log2(nodes)) * outer;
  return 2 * std::min(ring, tree);
}
} // namespace

double secondsOfMove(const Machine &machine, CollectiveKind kind,
                     const Group &group, double sent) {
  const Link &link = machine.link(group.link);
  // What is small against half_size moves at half of the bandwidth.
  double slower = sent > 0 ? link.halfSize * sent / (sent + link.halfSize) : 0;
  bool meets = group.link == LinkClass::betweenNodes;
  return link.latency + secondsOfHops(machine, kind, group) +
         (sent + slower) / bandwidthOf(machine, kind, group) +
         (meets ? machine.late : 0);
}

} // namespace meshwork::cost
