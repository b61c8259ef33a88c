#include "test/Sharding/ShortestPath.h"

#include <algorithm>

namespace meshwork::sharding::test {
namespace {

constexpr int64_t never = -1;
using Axes = std::vector<AxisId>;

bool startsWith(const Axes &axes, const Axes &start) {
  return axes.size() >= start.size() &&
         std::equal(start.begin(), start.end(), axes.begin());
}

Axes tail(const Axes &axes, size_t skip) {
  return Axes(axes.begin() + static_cast<long>(skip), axes.end());
}

Axes without(const Axes &axes, const Axes &removed) {
  Axes rest;
  for (AxisId axis : axes)
    if (std::find(removed.begin(), removed.end(), axis) == removed.end())
      rest.push_back(axis);
  return rest;
}

bool names(const Sharding &sharding, AxisId axis) {
  Axes all = sharding.partial;
  for (const Axes &axes : sharding.dims)
    all.insert(all.end(), axes.begin(), axes.end());
  return std::find(all.begin(), all.end(), axis) != all.end();
}

} // namespace

Graph::Graph(const Mesh &mesh, const std::vector<int64_t> &shape,
             int64_t elementBytes, const std::vector<Sharding> &shardings)
    : mesh(mesh), shape(shape), elementBytes(elementBytes),
      shardings(shardings) {
  for (const Sharding &a : shardings) {
    unsigned axes = 0;
    for (AxisId axis = 0; axis < mesh.axes.size(); ++axis)
      axes |= names(a, axis) ? 1u << axis : 0;
    used.push_back(axes);
    edges.emplace_back();
    for (size_t b = 0; b < shardings.size(); ++b) {
      int64_t bytes = bytesOfStep(a, shardings[b]);
      if (bytes != never)
        edges.back().push_back({b, bytes});
    }
  }
}

int64_t Graph::bytesOf(const Sharding &sharding) const {
  int64_t bytes = elementBytes;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    bytes *= localSize(mesh, shape[dim], sharding.dims[dim]);
  return bytes;
}

/// First element of each block that the axes behind the first `skip` choose,
/// within the first block of those; -1 for an empty one.
std::vector<int64_t> Graph::firsts(size_t dim, const Axes &axes,
                                   size_t skip) const {
  std::vector<int64_t> result;
  Axes group = tail(axes, skip);
  for (int64_t i = 0; i < mesh.numRanks(group); ++i) {
    layout::Range range =
        rangesOf(mesh, shape[dim], axes, mesh.withIndex(0, group, i))[0];
    result.push_back(range.count ? range.begin : -1);
  }
  return result;
}

bool Graph::isFlat(size_t dim, const Axes &axes, size_t skip) const {
  int64_t block = localSize(mesh, shape[dim], axes);
  std::vector<int64_t> begins = firsts(dim, axes, skip);
  for (size_t i = 0; i < begins.size(); ++i)
    if (begins[i] >= 0 && begins[i] != static_cast<int64_t>(i) * block)
      return false;
  return true;
}

int64_t Graph::bytesOfStep(const Sharding &a, const Sharding &b) const {
  std::vector<size_t> longer, shorter;
  bool other = false, permuted = true;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const Axes &from = a.dims[dim], &to = b.dims[dim];
    permuted &= firsts(dim, from, 0) == firsts(dim, to, 0);
    if (from == to)
      continue;
    if (startsWith(to, from))
      longer.push_back(dim);
    else if (startsWith(from, to))
      shorter.push_back(dim);
    else
      other = true;
  }
  bool samePartial = a.partial == b.partial;
  if (samePartial && permuted && a != b)
    return bytesOf(a);
  if (other || longer.size() > 1 || shorter.size() > 1)
    return never;
  Axes added, removed;
  if (!longer.empty()) {
    size_t dim = longer[0], skip = a.dims[dim].size();
    added = tail(b.dims[dim], skip);
    if (!isFlat(dim, b.dims[dim], skip))
      return never;
  }
  if (!shorter.empty()) {
    size_t dim = shorter[0], skip = b.dims[dim].size();
    removed = tail(a.dims[dim], skip);
    if (!isFlat(dim, a.dims[dim], skip))
      return never;
  }
  Axes reduced = without(a.partial, b.partial);
  if (!without(b.partial, a.partial).empty())
    return never;
  int64_t ranks = mesh.numRanks(!reduced.empty()   ? reduced
                                : !removed.empty() ? removed
                                                   : added);
  if (!reduced.empty()) {
    if (!removed.empty())
      return never;
    if (added.empty())
      return 2 * (ranks - 1) * bytesOf(a) / ranks;
    std::sort(added.begin(), added.end());
    return added == reduced ? (ranks - 1) * bytesOf(b) : never;
  }
  if (added.empty())
    return removed.empty() ? never : (ranks - 1) * bytesOf(a);
  if (removed.empty())
    return std::any_of(added.begin(), added.end(),
                       [&](AxisId axis) { return names(a, axis); })
               ? never
               : 0;
  if (added != removed)
    return never;
  Sharding chunk = a; // what one rank sends another
  chunk.dims[longer[0]] = b.dims[longer[0]];
  return (ranks - 1) * bytesOf(chunk);
}

std::vector<Cost> Graph::costsFrom(size_t from, unsigned idle,
                                   const Sharding &kept) const {
  std::vector<Cost> costs(edges.size());
  std::vector<bool> done(edges.size(), false); // or not to be visited
  for (size_t i = 0; i < edges.size(); ++i)
    done[i] =
        (used[i] & idle) ||
        !std::equal(
            kept.dims.begin(), kept.dims.end(), shardings[i].dims.begin(),
            [](const Axes &a, const Axes &b) { return startsWith(b, a); });
  costs[from] = {0, 0};
  while (true) {
    size_t best = edges.size();
    for (size_t i = 0; i < edges.size(); ++i)
      if (!done[i] && costs[i].bytes != INT64_MAX &&
          (best == edges.size() || costs[i] < costs[best]))
        best = i;
    if (best == edges.size())
      return costs;
    done[best] = true;
    for (const Edge &edge : edges[best]) {
      Cost cost{costs[best].bytes + edge.bytes, costs[best].steps + 1};
      if (!done[edge.to] && cost < costs[edge.to])
        costs[edge.to] = cost;
    }
  }
}

} // namespace meshwork::sharding::test
