// The clock of all times in traces and reports.
#pragma once

#include <chrono>
#include <cstdint>

namespace meshwork::runtime {

/// Steady, in nanoseconds; the same for all processes of a machine.
inline int64_t steadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace meshwork::runtime
