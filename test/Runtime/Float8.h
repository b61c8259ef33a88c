// Rounding to 8 bits, by looking at all numbers.
#pragma once

#include "runtime/core/Float8.h"

namespace meshwork::runtime::test {

/// The number of `type` nearest to `value`, of two the even one; beyond the
/// largest one that.
inline uint8_t toFloat8(plan::DType type, double value) {
  if (std::isnan(value))
    return 0x7f;
  double least = HUGE_VAL;
  int best = 0;
  for (int bits = 0; bits < 0x7f; ++bits) {
    double number = fromFloat8(type, static_cast<uint8_t>(bits));
    double distance = std::abs(number - std::abs(value));
    if (std::isfinite(number) &&
        (distance < least || (distance == least && bits % 2 == 0))) {
      least = distance;
      best = bits;
    }
  }
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

} // namespace meshwork::runtime::test
