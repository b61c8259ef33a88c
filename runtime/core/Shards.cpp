#include "runtime/core/Shards.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::runtime {

Block blockOf(const plan::Plan &plan, const flatbuffers::Vector<int64_t> *shape,
              const plan::Sharded &sharded,
              const std::function<uint32_t(uint32_t axis)> &index) {
  Block block;
  block.extent.assign(orEmpty(shape).begin(), orEmpty(shape).end());
  block.begin.assign(block.extent.size(), 0);
  block.shape = block.extent;
  if (!sharded.dims())
    return block;
  for (uint32_t dim = 0; dim < sharded.dims()->size(); ++dim)
    for (uint32_t axis : orEmpty(sharded.dims()->Get(dim)->axes())) {
      int64_t parts = plan.mesh()->Get(axis)->size();
      int64_t size = (block.shape[dim] - 1) / parts + 1;
      int64_t skipped = size * static_cast<int64_t>(index(axis));
      block.begin[dim] += skipped;
      block.extent[dim] =
          std::clamp<int64_t>(block.extent[dim] - skipped, 0, size);
      block.shape[dim] = size;
    }
  return block;
}

uint32_t viewOf(const plan::Sharded *sharded) {
  return sharded ? sharded->view() : plan::noView;
}

const plan::Sharded &masterOf(const plan::Parameter &parameter) {
  return viewOf(parameter.master()) == plan::noView ? *parameter.weight()
                                                    : *parameter.master();
}

} // namespace meshwork::runtime
