// A kernel like those that the compiler makes, for measurements: the runtime
// has no compiler.
#pragma once

#include <cstdint>

namespace meshwork::runtime {

/// out = gate / (1 + e^-gate) * up, elements `begin` to `end`; what a gated
/// activation computes.
void gateRows(const float *gate, const float *up, float *out, int64_t begin,
              int64_t end);

} // namespace meshwork::runtime
