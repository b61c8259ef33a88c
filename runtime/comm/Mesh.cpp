#include "runtime/comm/Mesh.h"

namespace meshwork::runtime {

Mesh::Mesh(std::vector<uint32_t> axisSizes)
    : sizes(std::move(axisSizes)), strides(sizes.size()) {
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = ranks;
    ranks *= sizes[i];
  }
}

uint32_t Mesh::index(uint32_t rank, absl::Span<const uint32_t> axes) const {
  uint32_t result = 0;
  for (uint32_t axis : axes)
    result = result * sizes[axis] + coordinate(rank, axis);
  return result;
}

std::vector<uint32_t> Mesh::group(uint32_t rank,
                                  absl::Span<const uint32_t> axes) const {
  uint32_t count = 1, origin = rank;
  for (uint32_t axis : axes) {
    count *= sizes[axis];
    origin -= coordinate(rank, axis) * strides[axis];
  }
  std::vector<uint32_t> members(count, origin);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t rest = i;
    for (size_t a = axes.size(); a-- > 0;) {
      members[i] += rest % sizes[axes[a]] * strides[axes[a]];
      rest /= sizes[axes[a]];
    }
  }
  return members;
}

Mesh meshOf(const plan::Plan &plan) {
  std::vector<uint32_t> sizes;
  for (const plan::Axis *axis : *plan.mesh())
    sizes.push_back(axis->size());
  return Mesh(std::move(sizes));
}

} // namespace meshwork::runtime
