// bf16 as its 16 bits: the upper half of the f32 of the same value.
#pragma once

#include <bit>
#include <cstdint>

namespace meshwork::runtime::cpu {

struct Bf16 {
  uint16_t bits;
};

inline float toFloat(float value) { return value; }
inline float toFloat(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// Rounds to nearest, ties to even; a NaN stays one (the sum below would carry
/// some of them over into infinity or zero).
inline Bf16 toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  return {static_cast<uint16_t>((isNan ? bits | 0x400000 : rounded) >> 16)};
}

inline void assign(float &to, float value) { to = value; }
inline void assign(Bf16 &to, float value) { to = toBf16(value); }

} // namespace meshwork::runtime::cpu
