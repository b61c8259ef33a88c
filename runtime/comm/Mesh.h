// Ranks on a mesh. Ranks are numbered row-major, the first axis outermost.
#pragma once

#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include <cstdint>
#include <vector>

namespace meshwork::runtime {

/// Sizes of the axes, outermost first; their product fits 32 bits.
class Mesh {
public:
  explicit Mesh(std::vector<uint32_t> sizes);

  uint32_t numRanks() const { return ranks; }
  uint32_t coordinate(uint32_t rank, uint32_t axis) const {
    return rank / strides[axis] % sizes[axis];
  }
  /// The rank that differs from `rank` in its coordinate along one axis.
  uint32_t at(uint32_t rank, uint32_t axis, uint32_t coordinate) const {
    return rank - this->coordinate(rank, axis) * strides[axis] +
           coordinate * strides[axis];
  }
  /// Row-major position of `rank` along `axes`, the first one major: its index
  /// in its group, or the part of the batch it works on.
  uint32_t index(uint32_t rank, absl::Span<const uint32_t> axes) const;
  /// The ranks that differ from `rank` only along `axes`, by that index.
  std::vector<uint32_t> group(uint32_t rank,
                              absl::Span<const uint32_t> axes) const;

private:
  std::vector<uint32_t> sizes, strides;
  uint32_t ranks = 1;
};

/// Of a plan that has been checked.
Mesh meshOf(const plan::Plan &plan);

} // namespace meshwork::runtime
