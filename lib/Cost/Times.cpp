#include "lib/Cost/Times.h"

#include "lib/Cost/GroupTime.h"
#include "lib/Cost/ProductTime.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace meshwork::cost {
namespace {

/// The product, or the largest number.
uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/// Of `count` machines whose times have the mean 1 and this deviation, the
/// slowest, as far as the first term of its expectation goes.
/// Source: Cramer, Mathematical Methods of Statistics (1946), 28.6.
double slowestOf(uint64_t count, double deviation) {
  return 1 + deviation * std::sqrt(2 * std::log(static_cast<double>(count)));
}

/// The same to a hundredth of `deviation`, for few machines too. Plotting
/// position: Blom, Statistical Estimates and Transformed Beta-Variables (1958);
/// quantile of the normal distribution: Abramowitz and Stegun (1964), 26.2.23.
double slowestOfFew(uint64_t count, double deviation) {
  double below = 0.625 / (static_cast<double>(count) + 0.25);
  if (count < 2)
    return 1;
  double t = std::sqrt(-2 * std::log(below));
  return 1 + deviation *
                 (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                          (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
}

/// What grows to its full rate, half of it being reached at `half`.
double ramp(double size, double half) {
  return size > 0 ? size / (size + half) : 1;
}
} // namespace

uint64_t ringSteps(plan::CollectiveKind kind, uint64_t ranks) {
  switch (kind) {
  case plan::CollectiveKind::all_reduce:
    return product(2, ranks - 1);
  case plan::CollectiveKind::permute:
    return ranks;
  default:
    return ranks - 1;
  }
}

uint64_t bytesSent(plan::CollectiveKind kind, uint64_t bytes, uint64_t ranks) {
  unsigned __int128 steps = ringSteps(kind, ranks);
  return static_cast<uint64_t>(
      std::min<unsigned __int128>(steps * bytes / ranks, UINT64_MAX));
}

Times::Times(const Machine &machine, std::vector<uint64_t> sizes, Ranks ranks)
    : on(machine), mesh(std::move(sizes)), ranks(ranks) {
  uint64_t all = 1;
  for (uint64_t size : mesh)
    all = product(all, size);
  share = on.share(all);
  slowest = slowestOf(all / on.ranksPerNode + (all % on.ranksPerNode != 0),
                      on.jitter) *
            slowestOfFew(all, on.rankJitter);
}

double Times::secondsOfFlops(Work work, double flops) const {
  auto type = static_cast<size_t>(work.type);
  if (work.kind == Work::attention) {
    const AttentionShape &shape = work.attended;
    bool isGradient = shape.isGradient && on.gradient[type] > 0;
    double rate = isGradient ? on.gradient[type] : on.attention[type],
           head = isGradient ? on.halfHeadOfGradient : on.halfHead,
           keys = isGradient ? on.halfKeysOfGradient : on.halfKeys;
    return flops / (rate * ramp(shape.headSize, head) * ramp(shape.keys, keys));
  }
  if (work.kind == Work::product && !on.products.tiles.empty() &&
      work.multiplied.isKnown())
    return secondsByTiles(on, work.multiplied, on.flops[type]);
  return (flops + (work.kind == Work::product ? on.halfSize : 0)) /
         on.flops[type];
}

double Times::instruction(Work work, double flops, double bytes) const {
  double memory = work.kind == Work::kernel ? on.kernels : on.memory;
  return std::max(secondsOfFlops(work, flops), bytes / memory) / share *
             slowest +
         on.launch;
}

uint64_t Times::ranksOf(std::span<const uint32_t> axes) const {
  uint64_t count = 1;
  for (uint32_t axis : axes)
    count = product(count, mesh[axis]);
  return count;
}

double Times::collective(plan::CollectiveKind kind, double bytes,
                         std::span<const uint32_t> axes) const {
  Group group = groupOf(axes);
  bool gathers = kind == plan::CollectiveKind::all_gather;
  double sent = static_cast<double>(ringSteps(kind, group.ranks)) /
                (gathers ? 1 : static_cast<double>(group.ranks)) * bytes;
  return secondsOfMove(on, kind, group, sent);
}

double Times::transfer(double bytes, uint32_t axis) const {
  return secondsOfMove(on, plan::CollectiveKind::permute, groupOf({&axis, 1}),
                       bytes);
}

double Times::hostCopy(double bytes) const {
  double ranks = std::max(on.host.sharedBy, 1u);
  return on.host.latency + bytes * ranks / on.host.bandwidth / share +
         on.launch;
}

Group Times::groupOf(std::span<const uint32_t> axes) const {
  Group group{linkOf(axes), ranksOf(axes)};
  group.inNode = group.ranks;
  if (group.link == LinkClass::betweenNodes) // Rank 0's may lie in one node.
    group.inNode = std::min(ranksInNode(axes), (group.ranks + 1) / 2);
  return group;
}

/// Of the group of rank 0: of each axis of it, whole blocks first, then what
/// the node cuts off the next one.
uint64_t Times::ranksInNode(std::span<const uint32_t> axes) const {
  uint64_t stride = 1, found = 1, inside = 1; // of the axes further in
  for (size_t axis = mesh.size(); axis-- > 0 && stride < on.ranksPerNode;) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      uint64_t steps = (on.ranksPerNode + stride - 1) / stride;
      found = inside * std::min(mesh[axis], steps);
      inside = product(inside, mesh[axis]);
    }
    stride = product(stride, mesh[axis]);
  }
  return std::max<uint64_t>(found, 1);
}

/// A group lies in a block of consecutive ranks that begins at a multiple of
/// its length: from the outermost of its axes inward. Blocks that a node's
/// ranks are no multiple of are cut somewhere.
bool Times::crossesNodes(std::span<const uint32_t> axes) const {
  uint64_t block = 1, all = 1;
  for (size_t axis = mesh.size(); axis-- > 0;) {
    all = product(all, mesh[axis]);
    if (mesh[axis] > 1 &&
        std::find(axes.begin(), axes.end(), axis) != axes.end())
      block = all;
  }
  return all > on.ranksPerNode && on.ranksPerNode % block != 0;
}

LinkClass Times::linkOf(std::span<const uint32_t> axes) const {
  if (crossesNodes(axes))
    return LinkClass::betweenNodes;
  uint64_t all = 1;
  for (uint64_t size : mesh)
    all = product(all, size);
  bool isOneProcess = on.device == spec::Device::cpu &&
                      ranks == Ranks::threads && all <= on.ranksPerNode;
  return isOneProcess ? LinkClass::inProcess : LinkClass::withinNode;
}

bool Times::takesCores(std::span<const uint32_t> axes) const {
  LinkClass slowest = linkOf(axes);
  return on.link(slowest).takesCores ||
         (slowest == LinkClass::inProcess &&
          on.link(LinkClass::withinNode).takesCores);
}

} // namespace meshwork::cost
