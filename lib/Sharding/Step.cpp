#include <algorithm>

#include "lib/Sharding/Steps.h"

namespace meshwork::sharding {
namespace {

bool contains(const std::vector<AxisId> &axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<char> namedAxes(const Mesh &mesh, const Sharding &sharding) {
  std::vector<char> named(mesh.axes.size(), false);
  for (AxisId axis : sharding.partial)
    named[axis] = true;
  for (const std::vector<AxisId> &axes : sharding.dims)
    for (AxisId axis : axes)
      named[axis] = true;
  return named;
}

/// Larger than 1, and replicated on the one side alone.
std::vector<AxisId> replicatedOnlyIn(const Mesh &mesh, const Sharding &sharding,
                                     const Sharding &other) {
  std::vector<char> named = namedAxes(mesh, sharding);
  std::vector<char> namedThere = namedAxes(mesh, other);
  std::vector<AxisId> axes;
  for (AxisId axis = 0; axis < mesh.axes.size(); ++axis)
    if (mesh.axes[axis].size > 1 && !named[axis] && namedThere[axis])
      axes.push_back(axis);
  return axes;
}

/// Ranks of the axes behind `axis` in its list: its weight in the index.
int64_t weightOf(const Mesh &mesh, const std::vector<AxisId> &axes,
                 AxisId axis) {
  int64_t weight = 1;
  for (size_t i = axes.size(); i-- > 0 && axes[i] != axis;)
    weight *= mesh.axes[axes[i]].size;
  return weight;
}

const char *nameOf(Step::Kind kind) {
  switch (kind) {
  case Step::Kind::allReduce:
    return "all_reduce";
  case Step::Kind::reduceScatter:
    return "reduce_scatter";
  case Step::Kind::allGather:
    return "all_gather";
  case Step::Kind::allToAll:
    return "all_to_all";
  case Step::Kind::permute:
    return "permute";
  case Step::Kind::slice:
    return "slice";
  }
  return "";
}

} // namespace

DimLayout Step::layoutLeft() const {
  bool gathers = kind == Kind::allGather || kind == Kind::allToAll;
  return gathers ? before.dims[static_cast<size_t>(dim)].back().layout
                 : DimLayout::block;
}

DimLayout Step::layoutEntered() const {
  bool cuts = kind == Kind::slice || kind == Kind::reduceScatter;
  int at = cuts ? dim : toDim;
  return at >= 0 ? after.dims[static_cast<size_t>(at)].back().layout
                 : DimLayout::block;
}

std::string Step::text(const Mesh &mesh) const {
  std::string text = std::string(nameOf(kind)) + " {";
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? ", \"" : "\"") + mesh.axes[axes[i]].name + "\"";
  text += "}";
  if (dim >= 0)
    text += " dim " + std::to_string(dim);
  if (toDim >= 0)
    text += " to dim " + std::to_string(toDim);
  return text;
}

int64_t Plan::bytesSent() const {
  int64_t bytes = 0;
  for (const Step &step : steps)
    bytes += step.bytesSent;
  return bytes;
}

std::vector<AxisId> permutedAxes(const Mesh &mesh, const Sharding &before,
                                 const Sharding &after) {
  std::vector<AxisId> moved = replicatedOnlyIn(mesh, before, after);
  for (AxisId axis : replicatedOnlyIn(mesh, after, before))
    moved.push_back(axis);
  for (size_t dim = 0; dim < before.dims.size(); ++dim)
    for (AxisId axis : before.dims[dim])
      if (!contains(moved, axis) && (!contains(after.dims[dim], axis) ||
                                     weightOf(mesh, before.dims[dim], axis) !=
                                         weightOf(mesh, after.dims[dim], axis)))
        moved.push_back(axis);
  std::sort(moved.begin(), moved.end());
  return moved;
}

int64_t permuteSource(const Mesh &mesh, const Step &step, int64_t rank) {
  int64_t source = rank;
  for (size_t dim = 0; dim < step.before.dims.size(); ++dim)
    source = mesh.withIndex(source, step.before.dims[dim],
                            mesh.index(rank, step.after.dims[dim]));
  // Copies come from different ranks, so that none sends more than others.
  return mesh.withIndex(
      source, replicatedOnlyIn(mesh, step.before, step.after),
      mesh.index(rank, replicatedOnlyIn(mesh, step.after, step.before)));
}

} // namespace meshwork::sharding
