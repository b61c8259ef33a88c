// Number formats that C++ lacks, with the rounding of the hardware.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace meshwork::ptx {

/// Canonical NaN of results (PTX ISA 8.8, 9.7.3: 0x7fffffff for .f32).
inline constexpr uint32_t nanBits = 0x7fffffff;

/// A double on its way to a narrower format, made odd when it is inexact, so
/// that the second rounding is right (S. Boldo and G. Melquiond, IEEE Trans.
/// Computers 57 (2008)). `error` is what `value` lacks.
inline double roundToOdd(double value, double error) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  if (error == 0 || !std::isfinite(value) || bits & 1)
    return value;
  bool outwards = (error > 0) == (value > 0);
  return std::bit_cast<double>(outwards ? bits + 1 : bits - 1);
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit Half(double value);
  explicit operator float() const;
  static constexpr uint16_t nan = 0x7fff, sign = 0x8000;
};

struct Bf16 {
  uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    bits = uint16_t((u & 0x7fffffff) > 0x7f800000 ? uint32_t(nan) : rounded);
  }
  explicit Bf16(double value);
  explicit operator float() const {
    return std::bit_cast<float>(uint32_t(bits) << 16);
  }
  static constexpr uint16_t nan = 0x7fff, sign = 0x8000;
};

/// What no float holds is rounded to odd, so that rounding it again is right.
inline float toOddFloat(double value) {
  float nearest = float(value);
  if (double(nearest) == value || !(std::fabs(value) < 3.4e38))
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (bits & 1)
    return nearest;
  bool outwards = std::fabs(value) > std::fabs(double(nearest));
  return std::bit_cast<float>(outwards ? bits + 1 : bits - 1);
}

#if defined(__F16C__)
inline Half::Half(float value) {
  _Float16 half = _Float16(value);
  bits = value != value ? nan : std::bit_cast<uint16_t>(half);
}
inline Half::operator float() const {
  return float(std::bit_cast<_Float16>(bits));
}
#else
inline Half::Half(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffff;
  uint16_t s = uint16_t(u >> 16 & sign);
  if (magnitude > 0x7f800000) {
    bits = nan;
  } else if (magnitude >= 0x47800000) { // 65536: infinity
    bits = s | 0x7c00;
  } else if (magnitude < 0x38800000) { // subnormal: units of 2^-24
    float scaled = std::bit_cast<float>(magnitude) * 16777216.f;
    bits = s | uint16_t(std::nearbyint(scaled));
  } else {
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    bits = s | uint16_t((rounded - (112u << 23)) >> 13);
  }
}
inline Half::operator float() const {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  uint32_t s = uint32_t(bits & sign) << 16;
  if (exponent == 0) {
    float value = float(fraction) / 16777216.f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | s);
  }
  uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(s | biased << 23 | fraction << 13);
}
#endif
inline Half::Half(double value) : Half(toOddFloat(value)) {}
inline Bf16::Bf16(double value) : Bf16(toOddFloat(value)) {}

template <class T> struct Pair {
  T low, high;
};
template <class T> inline constexpr bool isPair = false;
template <class T> inline constexpr bool isPair<Pair<T>> = true;
template <class T>
inline constexpr bool isNarrowFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, Bf16>;

inline float flush(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return bits & 0x7f800000 ? value : std::bit_cast<float>(bits & 0x80000000);
}
inline float canonical(float value) {
  return value != value ? std::bit_cast<float>(nanBits) : value;
}
/// f64 keeps a NaN's payload on the hardware.
inline double canonical(double value) { return value; }

} // namespace meshwork::ptx
