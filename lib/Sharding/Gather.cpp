// The plan for requests that are too large to search, or change a layout.
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

  /// Sums that `to` splits over the axes that they are partial over.
  void scatter(const Sharding &to) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      while (true) {
        size_t held = current.dims[dim].size();
        std::vector<AxisId> run = nextRun(dim, to);
        if (run.empty() || !std::all_of(run.begin(), run.end(), [&](AxisId a) {
              return isReduced(a, to);
            }))
          break;
        Sharding after = current;
        std::erase_if(after.partial, [&](AxisId axis) {
          return std::find(run.begin(), run.end(), axis) != run.end();
        });
        after.dims[dim] = to.dims[dim];
        after.dims[dim].resize(held + run.size());
        int64_t bytes = (mesh.numRanks(run) - 1) * localBytes(after);
        add(Step::Kind::reduceScatter, run, static_cast<int>(dim), after,
            bytes);
      }
  }

  /// Moves axes from the end of one dim to that of another where they belong.
  void exchange(const Sharding &to) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      for (size_t toDim = 0; toDim < shape.size(); ++toDim)
        if (toDim != dim)
          exchange(dim, toDim, to);
  }

  /// All but what `to` has, too.
  void gather(size_t dim, const Sharding &to) {
    size_t count = sharedMajor(current.dims[dim], to.dims[dim]);
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

  void slice(size_t dim, const Sharding &to) {
    const std::vector<AxisId> &axes = to.dims[dim];
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

  /// The axes that split `dim` next on the way to `to`: one, or a run of a
  /// layout. None where it is done, or something else must go before.
  std::vector<AxisId> nextRun(size_t dim, const Sharding &to) const {
    const std::vector<AxisId> &axes = to.dims[dim];
    size_t held = current.dims[dim].size();
    if (held >= axes.size() || sharedMajor(current.dims[dim], axes) != held)
      return {};
    auto begin = axes.begin() + static_cast<long>(held);
    return {begin, begin + static_cast<long>(runLength(axes, held))};
  }

  bool isReduced(AxisId axis, const Sharding &to) const {
    auto isIn = [&](const std::vector<AxisId> &axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    return isIn(current.partial) && !isIn(to.partial);
  }

  /// One axis: of several, blocks of the one dim need not be those of the
  /// other.
  void exchange(size_t dim, size_t toDim, const Sharding &to) {
    const std::vector<AxisId> &axes = current.dims[dim];
    size_t kept = sharedMajor(axes, to.dims[dim]);
    std::vector<AxisId> run = nextRun(toDim, to);
    if (axes.size() <= kept || run.size() != 1 || run[0] != axes.back() ||
        (axes.size() > 1 &&
         layout::areOneRun(axes[axes.size() - 2].layout, axes.back().layout)))
      return;
    Sharding after = current, both = current;
    after.dims[dim].pop_back();
    after.dims[toDim].push_back(run[0]);
    both.dims[toDim] = after.dims[toDim];
    int64_t bytes = (mesh.numRanks(run) - 1) * localBytes(both);
    add(Step::Kind::allToAll, run, static_cast<int>(dim), after, bytes);
    steps.back().toDim = static_cast<int>(toDim);
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
  builder.scatter(to);
  builder.reduce(to); // while the tensor is smallest
  builder.exchange(to);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    builder.gather(dim, to);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    builder.slice(dim, to);
  return std::move(builder.steps);
}

} // namespace meshwork::sharding
