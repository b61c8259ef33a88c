// Which blocks of a parameter each rank holds; the rules are in Plan.fbs at
// Sharded.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "meshwork/Plan/Ranges.h"
#include <cstdint>
#include <functional>
#include <vector>

namespace meshwork::plan {

/// The rank's index along one axis of the mesh.
using Coordinate = std::function<uint32_t(uint32_t axis)>;

/// How a rank takes part in each split of a dim over `axes`. Both lists have
/// been checked (checkSplit).
std::vector<layout::Cut> cutsOf(const Plan &plan,
                                const flatbuffers::Vector<uint32_t> *axes,
                                const flatbuffers::Vector<Layout> *layouts,
                                const Coordinate &index);
/// Of an input that is a part of a dim.
inline std::vector<layout::Cut> cutsOf(const Plan &plan, const Input &input,
                                       const Coordinate &index) {
  return cutsOf(plan, input.axes(), input.layouts(), index);
}

/// A box of a global tensor, and where it lies in the part that a rank holds.
struct Block {
  std::vector<int64_t> begin;  // first global index of each dim
  std::vector<int64_t> extent; // 1 or more
  std::vector<int64_t> offset; // first index of each dim in the part
};

int64_t elementsOf(const Block &block);
/// The block in pieces of at most `most` elements, which is 1 or more, one
/// after the other in its row-major order.
std::vector<Block> piecesOf(const Block &block, int64_t most);

/// What a rank holds of a tensor, along each dim.
struct Part {
  std::vector<std::vector<layout::Range>> dims;
  std::vector<int64_t> shape; // of the memory, at least what is held

  /// In the order of the global tensor, a box for each choice of a range of
  /// each dim; none where the rank holds nothing.
  std::vector<Block> blocks() const;
};

/// The axes have been checked.
Part partOf(const Plan &plan, const flatbuffers::Vector<int64_t> *shape,
            const Sharded &sharded, const Coordinate &index);

/// The view of a part that may be absent.
uint32_t viewOf(const Sharded *sharded);
/// The part of the state for `role`, of an optimizer's the first; null where
/// nothing is kept for it.
const Sharded *statePart(const Parameter &parameter, StateRole role);
inline uint32_t weightView(const Parameter &parameter) {
  return viewOf(statePart(parameter, StateRole::weight));
}
inline uint32_t gradientView(const Parameter &parameter) {
  return viewOf(statePart(parameter, StateRole::gradient));
}
/// The part that holds f32 values: the master, or without one the weight.
const Sharded &masterOf(const Parameter &parameter);

} // namespace meshwork::plan
