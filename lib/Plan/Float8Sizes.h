// Sizes of products that tensor cores take in 8 bits.
#pragma once

#include <cstdint>

namespace meshwork::plan {

/// Rows, columns and the summed size of an FP8 product are multiples of it: 16
/// bytes of either operand's dense dim, and of a result's (cuBLAS, 8-bit data
/// types).
inline constexpr int64_t float8Unit = 16;

} // namespace meshwork::plan
