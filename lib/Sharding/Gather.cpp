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
      Sharding after = current;
      std::vector<AxisId> &axes = after.dims[dim];
      size_t last = 0; // run
      while (last + runLength(axes, last) < axes.size())
        last += runLength(axes, last);
      axes.resize(last);
      std::vector<AxisId> run = behind(current.dims[dim], last);
      int64_t bytes = (mesh.numRanks(run) - 1) * localBytes(current);
      add(Step::Kind::allGather, run, static_cast<int>(dim), after, bytes);
    }
  }

  void sliceTo(size_t dim, const std::vector<AxisId> &axes) {
    for (size_t i = current.dims[dim].size(); i < axes.size();) {
      Sharding after = current;
      size_t end = i + runLength(axes, i);
      after.dims[dim].insert(after.dims[dim].end(),
                             axes.begin() + static_cast<long>(i),
                             axes.begin() + static_cast<long>(end));
      add(Step::Kind::slice, behind(after.dims[dim], i), static_cast<int>(dim),
          after, 0);
      i = end;
    }
  }

  std::vector<Step> steps;

private:
  static std::vector<AxisId> behind(const std::vector<AxisId> &axes,
                                    size_t count) {
    return {axes.begin() + static_cast<long>(count), axes.end()};
  }

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
    builder.gatherTo(dim, sharedMajor(from.dims[dim], to.dims[dim]));
  }
  for (size_t dim = 0; dim < shape.size(); ++dim)
    builder.sliceTo(dim, to.dims[dim]);
  return std::move(builder.steps);
}

} // namespace meshwork::sharding
