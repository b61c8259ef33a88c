// Rounding to 8 bits, by looking among all numbers.
#pragma once

#include "runtime/machine/Float8.h"
#include <algorithm>
#include <cmath>
#include <vector>

namespace meshwork::runtime::test {

/// The finite numbers of `type` from zero up; their places are their bits.
inline std::vector<double> float8Numbers(plan::DType type) {
  std::vector<double> numbers;
  for (int bits = 0; bits < 0x7f; ++bits)
    if (double number = fromFloat8(type, static_cast<uint8_t>(bits));
        std::isfinite(number))
      numbers.push_back(number);
  return numbers;
}

/// The number of `type` nearest to `value`, of two the even one; beyond the
/// largest one that.
inline uint8_t toFloat8(plan::DType type, double value) {
  static const std::vector<double> e4m3 = float8Numbers(plan::DType::e4m3),
                                   e5m2 = float8Numbers(plan::DType::e5m2);
  if (std::isnan(value))
    return 0x7f;
  const std::vector<double> &numbers = type == plan::DType::e4m3 ? e4m3 : e5m2;
  double size = std::min(std::abs(value), numbers.back());
  size_t above =
      std::lower_bound(numbers.begin(), numbers.end(), size) - numbers.begin();
  size_t best = above;
  if (above > 0) {
    double down = size - numbers[above - 1], up = numbers[above] - size;
    if (down < up || (down == up && above % 2 == 1))
      best = above - 1;
  }
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

} // namespace meshwork::runtime::test
