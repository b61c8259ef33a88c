#include "test/Sharding/Enumerate.h"

namespace meshwork::sharding::test {
namespace {

void place(const Mesh &mesh, AxisId axis, const Sharding &soFar,
           std::vector<Sharding> &found) {
  if (axis == mesh.axes.size()) {
    found.push_back(soFar);
    return;
  }
  place(mesh, axis + 1, soFar, found);
  Sharding next = soFar;
  next.partial.push_back(axis);
  place(mesh, axis + 1, next, found);
  for (size_t dim = 0; dim < soFar.dims.size(); ++dim)
    for (size_t at = 0; at <= soFar.dims[dim].size(); ++at) {
      next = soFar;
      next.dims[dim].insert(next.dims[dim].begin() + static_cast<long>(at),
                            axis);
      place(mesh, axis + 1, next, found);
    }
}

} // namespace

std::vector<Sharding> allShardings(const Mesh &mesh, size_t numDims,
                                   Reduction reduction) {
  Sharding none;
  none.dims.resize(numDims);
  none.reduction = reduction;
  std::vector<Sharding> found;
  place(mesh, 0, none, found);
  return found;
}

} // namespace meshwork::sharding::test
