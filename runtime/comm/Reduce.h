// Sums and maxima over the copies that the ranks of a group hold.
#pragma once

#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime {

/// Reduces elements [begin, end) of `sources` in their order, in f32, and
/// writes the result, rounded once to `dtype` (nearest, ties to even), to the
/// same elements of each of `targets`, which may be among the sources. A NaN
/// in any source gives NaN. `dtype` is f32 or bf16.
void reduceRange(plan::DType dtype, plan::Reduction reduction,
                 absl::Span<const std::byte *const> sources,
                 absl::Span<std::byte *const> targets, int64_t begin,
                 int64_t end);

} // namespace meshwork::runtime
