// Element types of weight files to and from f32. Internal to the runtime's
// readers and writers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwork::runtime {

/// Reads `count` elements at `from` (any alignment), little endian.
using Converter = void (*)(const unsigned char *from, uint64_t count,
                           float *to);

/// For "F32", "F16", "BF16" and "F64"; null for any other.
Converter converterToFloat(std::string_view dtype);

/// Writes `count` elements at `to` (any alignment), little endian, rounded to
/// the nearest and half to even. Too large ones become infinite, NaN stays NaN.
struct FloatWriter {
  uint64_t width; // bytes of an element
  void (*write)(const float *from, uint64_t count, unsigned char *to);
};

/// For "F32", "F16" and "BF16"; nothing for any other.
std::optional<FloatWriter> writerOfFloats(std::string_view dtype);

} // namespace meshwork::runtime
