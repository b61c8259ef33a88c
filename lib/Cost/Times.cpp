#include "lib/Cost/Times.h"

#include <algorithm>
#include <cstdint>

namespace meshwork::cost {
namespace {

/// The product, or the largest number.
uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
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
}

double Times::instruction(Work work, double flops, double bytes) const {
  auto type = static_cast<size_t>(work.type);
  double rate =
             work.kind == Work::attention ? on.attention[type] : on.flops[type],
         memory = work.kind == Work::kernel ? on.kernels : on.memory;
  if (work.kind == Work::product)
    flops += on.halfSize;
  return std::max(flops / rate, bytes / memory) / share + on.launch;
}

uint64_t Times::ranksOf(std::span<const uint32_t> axes) const {
  uint64_t count = 1;
  for (uint32_t axis : axes)
    count = product(count, mesh[axis]);
  return count;
}

double Times::collective(plan::CollectiveKind kind, double bytes,
                         std::span<const uint32_t> axes) const {
  uint64_t count = ranksOf(axes);
  bool gathers = kind == plan::CollectiveKind::all_gather;
  double sent = static_cast<double>(ringSteps(kind, count)) /
                (gathers ? 1 : static_cast<double>(count)) * bytes;
  const Link &link = on.link(linkOf(axes));
  return link.latency + sent / link.bandwidth;
}

double Times::transfer(double bytes, uint32_t axis) const {
  const Link &link = on.link(linkOf({&axis, 1}));
  return link.latency + bytes / link.bandwidth;
}

double Times::hostCopy(double bytes) const {
  return bytes / on.host / share + on.launch;
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
