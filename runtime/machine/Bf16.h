// bf16 is the upper half of the f32 of the same value.
#pragma once

#include <bit>
#include <cstdint>

namespace meshwork::runtime {

/// To nearest, ties to even; a NaN stays one.
inline uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

inline float fromBf16(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

} // namespace meshwork::runtime
