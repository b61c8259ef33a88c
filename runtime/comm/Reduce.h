// Sums and maxima over the copies that the ranks of a group hold.
#pragma once

#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime {

/// Reduces `count` elements of each of `sources` in f32, in the order of
/// sources. The sum is rounded once to `dtype` (nearest, ties to even).
/// Elements lie `srcStride` apart in a source and `dstStride` apart in each of
/// `targets`. A target may be a source with the same stride. A NaN in any
/// source gives NaN. `dtype` is f32, bf16 or i32; i32 is added up in 32 bits.
void reduceRun(plan::DType dtype, plan::Reduction reduction,
               absl::Span<const std::byte *const> sources, int64_t srcStride,
               absl::Span<std::byte *const> targets, int64_t dstStride,
               int64_t count);

} // namespace meshwork::runtime
