#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::plan {

std::vector<layout::Cut> cutsOf(const Plan &plan,
                                const flatbuffers::Vector<uint32_t> *axes,
                                const flatbuffers::Vector<Layout> *layouts,
                                const Coordinate &index) {
  std::vector<layout::Cut> cuts;
  for (uint32_t i = 0; i < orEmpty(axes).size(); ++i) {
    uint32_t axis = axes->Get(i);
    layout::Cut cut{plan.mesh()->Get(axis)->size(), index(axis)};
    if (i < orEmpty(layouts).size())
      cut.layout = layouts->Get(i);
    layout::addCut(cuts, cut);
  }
  return cuts;
}

int64_t elementsOf(const Block &block) {
  int64_t elements = 1;
  for (int64_t extent : block.extent)
    elements *= extent;
  return elements;
}

static void addPieces(const Block &block, int64_t most,
                      std::vector<Block> &pieces) {
  auto cut = std::find_if(block.extent.begin(), block.extent.end(),
                          [](int64_t extent) { return extent > 1; });
  if (elementsOf(block) <= most || cut == block.extent.end())
    return pieces.push_back(block);
  auto dim = static_cast<size_t>(cut - block.extent.begin());
  Block first = block, second = block;
  first.extent[dim] = (block.extent[dim] + 1) / 2;
  second.extent[dim] -= first.extent[dim];
  second.begin[dim] += first.extent[dim];
  second.offset[dim] += first.extent[dim];
  addPieces(first, most, pieces);
  addPieces(second, most, pieces);
}

std::vector<Block> piecesOf(const Block &block, int64_t most) {
  std::vector<Block> pieces;
  addPieces(block, most, pieces);
  return pieces;
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

Part partOf(const Plan &plan, const flatbuffers::Vector<int64_t> *shape,
            const Sharded &sharded, const Coordinate &index) {
  Part part;
  uint32_t dims = sharded.is_number() ? 0 : orEmpty(shape).size();
  for (uint32_t dim = 0; dim < dims; ++dim) {
    const auto &splits = orEmpty(sharded.dims());
    std::vector<layout::Cut> cuts;
    if (dim < splits.size())
      cuts = cutsOf(plan, splits.Get(dim)->axes(), splits.Get(dim)->layouts(),
                    index);
    part.dims.push_back(layout::ranges(shape->Get(dim), cuts));
    part.shape.push_back(layout::storedSize(shape->Get(dim), cuts));
  }
  return part;
}

uint32_t viewOf(const Sharded *sharded) {
  return sharded ? sharded->view() : noView;
}

const Sharded *statePart(const Parameter &parameter, StateRole role) {
  for (const State *state : orEmpty(parameter.states()))
    if (state->role() == role)
      return state->part();
  return nullptr;
}

const Sharded &masterOf(const Parameter &parameter) {
  const Sharded *master = statePart(parameter, StateRole::master);
  return master ? *master : *statePart(parameter, StateRole::weight);
}

} // namespace meshwork::plan
