// Element types of weight files to f32. Internal to runtime/io.
#pragma once

#include <cstdint>
#include <string_view>

namespace meshwork::runtime {

/// Reads `count` elements at `from` (any alignment), little endian.
using Converter = void (*)(const unsigned char *from, uint64_t count,
                           float *to);

/// For "F32", "F16", "BF16" and "F64"; null for any other.
Converter converterToFloat(std::string_view dtype);

} // namespace meshwork::runtime
