#include "runtime/core/Shards.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/core/Views.h"

namespace meshwork::runtime {

std::vector<layout::Cut> cutsOf(const plan::Plan &plan,
                                const flatbuffers::Vector<uint32_t> *axes,
                                const Coordinate &index) {
  std::vector<layout::Cut> cuts;
  for (uint32_t axis : orEmpty(axes))
    cuts.push_back({plan.mesh()->Get(axis)->size(), index(axis),
                    layout::DimLayout::block});
  return cuts;
}

std::vector<Block> Part::blocks() const {
  std::vector<Block> blocks(1);
  for (const std::vector<layout::Range> &ranges : dims) {
    std::vector<Block> longer;
    for (const Block &block : blocks)
      for (const layout::Range &range : ranges) {
        if (range.count == 0)
          continue;
        Block &next = longer.emplace_back(block);
        next.begin.push_back(range.begin);
        next.extent.push_back(range.count);
        next.offset.push_back(range.offset);
      }
    blocks = std::move(longer);
  }
  return blocks;
}

Part partOf(const plan::Plan &plan, const flatbuffers::Vector<int64_t> *shape,
            const plan::Sharded &sharded, const Coordinate &index) {
  Part part;
  for (uint32_t dim = 0; dim < orEmpty(shape).size(); ++dim) {
    const auto &dims = orEmpty(sharded.dims());
    const auto *axes = dim < dims.size() ? dims.Get(dim)->axes() : nullptr;
    std::vector<layout::Cut> cuts = cutsOf(plan, axes, index);
    part.dims.push_back(layout::ranges(shape->Get(dim), cuts));
    part.shape.push_back(layout::storedSize(shape->Get(dim), cuts));
  }
  return part;
}

uint32_t viewOf(const plan::Sharded *sharded) {
  return sharded ? sharded->view() : plan::noView;
}

const plan::Sharded *statePart(const plan::Parameter &parameter,
                               plan::StateRole role) {
  for (const plan::State *state : orEmpty(parameter.states()))
    if (state->role() == role)
      return state->part();
  return nullptr;
}

const plan::Sharded &masterOf(const plan::Parameter &parameter) {
  const plan::Sharded *master = statePart(parameter, plan::StateRole::master);
  return master ? *master : *statePart(parameter, plan::StateRole::weight);
}

} // namespace meshwork::runtime
