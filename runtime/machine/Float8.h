// Numbers of 8 bits: s eeee mmm (e4m3; NaN is 1111 111, there are no
// infinities) and s eeeee mm (e5m2, an f16 cut short). Source: Micikevicius et
// al., arXiv 2209.05433.
#pragma once

#include "meshwork/Plan/Types.h"
#include <cmath>
#include <cstdint>
#include <limits>

namespace meshwork::runtime {

/// What `bits` stand for; `type` is e4m3 or e5m2.
inline float fromFloat8(plan::DType type, uint8_t bits) {
  bool narrow = type == plan::DType::e5m2;
  int mantissaBits = narrow ? 2 : 3, bias = narrow ? 15 : 7;
  int magnitude = bits & 0x7f, mantissa = magnitude & ((1 << mantissaBits) - 1);
  int exponent = magnitude >> mantissaBits;
  float value;
  if (narrow ? magnitude > 0x7c : magnitude == 0x7f)
    value = std::numeric_limits<float>::quiet_NaN();
  else if (narrow && magnitude == 0x7c)
    value = std::numeric_limits<float>::infinity();
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits);
  else
    value = std::ldexp(static_cast<float>(mantissa + (1 << mantissaBits)),
                       exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

} // namespace meshwork::runtime
