// Which block of a parameter each rank holds; the rules are in Plan.fbs at
// Sharded.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <cstdint>
#include <functional>
#include <vector>

namespace meshwork::runtime {

/// A box of a global tensor, and the box of memory that is kept for it.
struct Block {
  std::vector<int64_t> begin;  // first global index of each dim
  std::vector<int64_t> extent; // of the tensor's own; 0 where there is none
  std::vector<int64_t> shape;  // of the memory, at least the extent
};

/// One dim: its elements [begin, begin + extent) in storage of `size`.
struct BlockOfDim {
  int64_t begin = 0, extent = 0, size = 0;
};

/// A dim of `size` elements split over `axes`, which have been checked.
BlockOfDim blockOfDim(const plan::Plan &plan, int64_t size,
                      const flatbuffers::Vector<uint32_t> *axes,
                      const std::function<uint32_t(uint32_t axis)> &index);

/// The axes have been checked. `index` gives the rank's index along one axis.
Block blockOf(const plan::Plan &plan, const flatbuffers::Vector<int64_t> *shape,
              const plan::Sharded &sharded,
              const std::function<uint32_t(uint32_t axis)> &index);

/// The view of a part that may be absent.
uint32_t viewOf(const plan::Sharded *sharded);
inline uint32_t weightView(const plan::Parameter &parameter) {
  return viewOf(parameter.weight());
}
/// The part that holds f32 values: the master, or without one the weight.
const plan::Sharded &masterOf(const plan::Parameter &parameter);

} // namespace meshwork::runtime
