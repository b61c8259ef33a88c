#include "lib/Sharding/Sharding.h"

#include <algorithm>
#include <set>

namespace meshwork::sharding {
namespace {

constexpr int64_t maxRanks = int64_t{1} << 31;

std::vector<AxisId> sorted(std::vector<AxisId> axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::string namesOf(const Mesh &mesh, const std::vector<AxisId> &axes) {
  std::string text = "{";
  for (size_t i = 0; i < axes.size(); ++i) {
    text += i ? ", \"" : "\"";
    text += axes[i] < mesh.axes.size() ? mesh.axes[axes[i]].name
                                       : "#" + std::to_string(axes[i]);
    text += '"';
    if (axes[i].layout != DimLayout::block)
      text += std::string(" ") + layout::nameOf(axes[i].layout);
  }
  return text + "}";
}

/// Adds the axes of one dim or of `partial`; says what is wrong with them.
std::string use(const Mesh &mesh, const std::vector<AxisId> &axes,
                const std::string &where, std::set<AxisId> &used) {
  for (AxisId axis : axes) {
    if (axis >= mesh.axes.size())
      return where + ": found axis #" + std::to_string(axis) +
             ", expected one of the mesh's " +
             std::to_string(mesh.axes.size()) + " axes";
    if (!used.insert(axis).second)
      return where + ": found axis \"" + mesh.axes[axis].name +
             "\" again, expected each axis to be used once";
  }
  return "";
}

} // namespace

int64_t Mesh::numRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : axes)
    ranks *= axis.size;
  return ranks;
}

int64_t Mesh::numRanks(const std::vector<AxisId> &group) const {
  int64_t ranks = 1;
  for (AxisId axis : group)
    ranks *= axes[axis].size;
  return ranks;
}

int64_t Mesh::coordinate(int64_t rank, AxisId axis) const {
  for (size_t inner = axes.size() - 1; inner > axis; --inner)
    rank /= axes[inner].size;
  return rank % axes[axis].size;
}

int64_t Mesh::index(int64_t rank, const std::vector<AxisId> &group) const {
  int64_t index = 0;
  for (AxisId axis : group)
    index = index * axes[axis].size + coordinate(rank, axis);
  return index;
}

int64_t Mesh::withIndex(int64_t rank, const std::vector<AxisId> &group,
                        int64_t index) const {
  for (size_t i = group.size(); i-- > 0;) {
    AxisId axis = group[i];
    int64_t stride = 1;
    for (size_t inner = axis + 1; inner < axes.size(); ++inner)
      stride *= axes[inner].size;
    int64_t size = axes[axis].size;
    rank += (index % size - coordinate(rank, axis)) * stride;
    index /= size;
  }
  return rank;
}

std::string Sharding::text(const Mesh &mesh) const {
  std::string text = "[";
  for (size_t dim = 0; dim < dims.size(); ++dim)
    text += (dim ? ", " : "") + namesOf(mesh, dims[dim]);
  text += "]";
  if (!partial.empty())
    text += std::string(" partial ") +
            (reduction == Reduction::sum ? "sum " : "max ") +
            namesOf(mesh, sorted(partial));
  return text;
}

bool sameDim(const std::vector<AxisId> &a, const std::vector<AxisId> &b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](AxisId x, AxisId y) { return x == y && x.layout == y.layout; });
}

bool sameDims(const std::vector<std::vector<AxisId>> &a,
              const std::vector<std::vector<AxisId>> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameDim);
}

bool operator==(const Sharding &a, const Sharding &b) {
  return sameDims(a.dims, b.dims) && sorted(a.partial) == sorted(b.partial) &&
         (a.partial.empty() || a.reduction == b.reduction);
}

size_t hash(const Sharding &sharding) {
  uint64_t hash = 0;
  auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  };
  for (const std::vector<AxisId> &axes : sharding.dims) {
    mix(axes.size());
    for (AxisId axis : axes)
      mix(axis + (static_cast<uint64_t>(axis.layout) << 40));
  }
  for (AxisId axis : sorted(sharding.partial))
    mix((uint64_t{1} << 32) + axis);
  if (!sharding.partial.empty())
    mix(static_cast<uint64_t>(sharding.reduction));
  return hash;
}

std::string check(const Mesh &mesh) {
  std::set<std::string> names;
  int64_t ranks = 1;
  for (const Axis &axis : mesh.axes) {
    if (!names.insert(axis.name).second)
      return "the mesh has axis \"" + axis.name + "\" twice";
    if (axis.size < 1)
      return "axis \"" + axis.name + "\": found size " +
             std::to_string(axis.size) + ", expected 1 or more";
    if (axis.size > maxRanks / ranks)
      return "the mesh has more than " + std::to_string(maxRanks) +
             " ranks; use smaller axes";
    ranks *= axis.size;
  }
  return "";
}

std::string check(const Mesh &mesh, const std::vector<int64_t> &shape,
                  const Sharding &sharding) {
  if (sharding.dims.size() != shape.size())
    return "found a sharding of " + std::to_string(sharding.dims.size()) +
           " dims, expected the tensor's " + std::to_string(shape.size());
  std::set<AxisId> used;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::string where = "dim " + std::to_string(dim);
    if (shape[dim] < 0)
      return where + ": found size " + std::to_string(shape[dim]) +
             ", expected 0 or more";
    std::string error = use(mesh, sharding.dims[dim], where, used);
    if (!error.empty())
      return error;
  }
  return use(mesh, sharding.partial, "partial", used);
}

Sharding normalized(const Mesh &mesh, Sharding sharding) {
  auto strip = [&](std::vector<AxisId> &axes) {
    axes.erase(
        std::remove_if(axes.begin(), axes.end(),
                       [&](AxisId axis) { return mesh.axes[axis].size == 1; }),
        axes.end());
  };
  for (std::vector<AxisId> &axes : sharding.dims)
    strip(axes);
  strip(sharding.partial);
  std::sort(sharding.partial.begin(), sharding.partial.end());
  return sharding;
}

size_t runLength(const std::vector<AxisId> &axes, size_t first) {
  size_t end = first + 1;
  while (end < axes.size() &&
         layout::areOneRun(axes[first].layout, axes[end].layout))
    ++end;
  return end - first;
}

size_t sharedMajor(const std::vector<AxisId> &a, const std::vector<AxisId> &b) {
  size_t shared = 0;
  while (shared < a.size() && shared < b.size()) {
    size_t run = runLength(a, shared);
    if (run != runLength(b, shared))
      break;
    for (size_t i = shared; i < shared + run; ++i)
      if (a[i] != b[i] || a[i].layout != b[i].layout)
        return shared;
    shared += run;
  }
  return shared;
}

std::vector<layout::Cut> cutsOf(const Mesh &mesh,
                                const std::vector<AxisId> &axes, int64_t rank) {
  std::vector<layout::Cut> cuts;
  for (size_t i = 0; i < axes.size();) {
    size_t end = i + runLength(axes, i);
    std::vector<AxisId> run(axes.begin() + static_cast<long>(i),
                            axes.begin() + static_cast<long>(end));
    cuts.push_back({mesh.numRanks(run), mesh.index(rank, run), axes[i].layout});
    i = end;
  }
  return cuts;
}

int64_t localSize(const Mesh &mesh, int64_t size,
                  const std::vector<AxisId> &axes) {
  return layout::storedSize(size, cutsOf(mesh, axes, 0));
}

std::vector<int64_t> localShape(const Mesh &mesh,
                                const std::vector<int64_t> &shape,
                                const Sharding &sharding) {
  std::vector<int64_t> local;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    local.push_back(localSize(mesh, shape[dim], sharding.dims[dim]));
  return local;
}

std::vector<layout::Range> rangesOf(const Mesh &mesh, int64_t size,
                                    const std::vector<AxisId> &axes,
                                    int64_t rank) {
  return layout::ranges(size, cutsOf(mesh, axes, rank));
}

} // namespace meshwork::sharding
