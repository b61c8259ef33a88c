// One row of the tables of rotary position embeddings, as Plan.fbs says at
// RotaryTable; every device holds these bits.
#pragma once

#include "absl/types/span.h"
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace meshwork::runtime {

/// `cos` and `sin` have twice as many elements as there are frequencies; zeros
/// of a negative position.
inline void fillRotaryRow(int64_t position, absl::Span<const float> frequencies,
                          float scale, float *cos, float *sin) {
  size_t half = frequencies.size();
  if (position < 0) {
    std::fill_n(cos, 2 * half, 0.0f);
    std::fill_n(sin, 2 * half, 0.0f);
    return;
  }
  for (size_t i = 0; i < half; ++i) {
    // The product is in f32, as the models were trained; the functions are
    // in f64 so that every C library gives the same f32.
    double angle = static_cast<float>(position) * frequencies[i];
    float c = static_cast<float>(std::cos(angle)) * scale;
    float s = static_cast<float>(std::sin(angle)) * scale;
    cos[i] = cos[half + i] = c;
    sin[i] = -s;
    sin[half + i] = s;
  }
}

} // namespace meshwork::runtime
