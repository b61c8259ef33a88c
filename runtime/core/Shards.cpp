#include "runtime/core/Shards.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::runtime {

BlockOfDim blockOfDim(const plan::Plan &plan, int64_t size,
                      const flatbuffers::Vector<uint32_t> *axes,
                      const std::function<uint32_t(uint32_t axis)> &index) {
  BlockOfDim block{0, size, size};
  for (uint32_t axis : orEmpty(axes)) {
    int64_t parts = plan.mesh()->Get(axis)->size();
    block.size = (block.size - 1) / parts + 1;
    int64_t skipped = block.size * static_cast<int64_t>(index(axis));
    block.begin += skipped;
    block.extent = std::clamp<int64_t>(block.extent - skipped, 0, block.size);
  }
  return block;
}

Block blockOf(const plan::Plan &plan, const flatbuffers::Vector<int64_t> *shape,
              const plan::Sharded &sharded,
              const std::function<uint32_t(uint32_t axis)> &index) {
  Block block;
  for (uint32_t dim = 0; dim < orEmpty(shape).size(); ++dim) {
    const auto &dims = orEmpty(sharded.dims());
    const auto *axes = dim < dims.size() ? dims.Get(dim)->axes() : nullptr;
    BlockOfDim one = blockOfDim(plan, shape->Get(dim), axes, index);
    block.begin.push_back(one.begin);
    block.extent.push_back(one.extent);
    block.shape.push_back(one.size);
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
