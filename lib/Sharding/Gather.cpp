// The plan for requests that are too large to search.
#include <algorithm>

#include "lib/Sharding/Steps.h"

namespace meshwork::sharding {
namespace {

class Builder {
public:
  Builder(const Mesh &mesh, const std::vector<int64_t> &shape,
          int64_t elementBytes, const Sharding &from)
      : mesh(mesh), shape(shape), elementBytes(elementBytes), current(from) {}

  void reduce(const Sharding &to) {
    Sharding after = current;
    after.partial = to.partial;
    std::vector<AxisId> axes;
    for (AxisId axis : current.partial)
      if (std::find(to.partial.begin(), to.partial.end(), axis) ==
          to.partial.end())
        axes.push_back(axis);
    if (axes.empty())
      return;
    int64_t ranks = mesh.numRanks(axes);
    auto bytes = static_cast<int64_t>(static_cast<__int128>(2 * (ranks - 1)) *
                                      localBytes(current) / ranks);
    add(Step::Kind::allReduce, axes, -1, after, bytes);
  }

  void gatherTo(size_t dim, size_t count) {
    while (current.dims[dim].size() > count) {
      AxisId axis = current.dims[dim].back();
      Sharding after = current;
      after.dims[dim].pop_back();
      int64_t bytes = (mesh.axes[axis].size - 1) * localBytes(current);
      add(Step::Kind::allGather, {axis}, static_cast<int>(dim), after, bytes);
    }
  }

  void sliceTo(size_t dim, const std::vector<AxisId> &axes) {
    for (size_t i = current.dims[dim].size(); i < axes.size(); ++i) {
      Sharding after = current;
      after.dims[dim].push_back(axes[i]);
      add(Step::Kind::slice, {axes[i]}, static_cast<int>(dim), after, 0);
    }
  }

  std::vector<Step> steps;

private:
  int64_t localBytes(const Sharding &sharding) const {
    int64_t bytes = elementBytes;
    for (int64_t size : localShape(mesh, shape, sharding))
      bytes *= size;
    return bytes;
  }

  void add(Step::Kind kind, std::vector<AxisId> axes, int dim,
           const Sharding &after, int64_t bytes) {
    steps.push_back(
        {kind, std::move(axes), dim, /*toDim=*/-1, current, after, bytes});
    current = after;
  }

  const Mesh &mesh;
  const std::vector<int64_t> &shape;
  int64_t elementBytes;
  Sharding current;
};

} // namespace

std::vector<Step> planThroughReplicated(const Mesh &mesh,
                                        const std::vector<int64_t> &shape,
                                        int64_t elementBytes,
                                        const Sharding &from,
                                        const Sharding &to) {
  Builder builder(mesh, shape, elementBytes, from);
  builder.reduce(to); // while the tensor is smallest
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const auto &a = from.dims[dim], &b = to.dims[dim];
    auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    builder.gatherTo(dim, static_cast<size_t>(differ.first - a.begin()));
  }
  for (size_t dim = 0; dim < shape.size(); ++dim)
    builder.sliceTo(dim, to.dims[dim]);
  return std::move(builder.steps);
}

} // namespace meshwork::sharding
