// The clocks: of all times in traces and reports, and of the day.
#pragma once

#include <chrono>
#include <cstdint>

namespace meshwork::runtime {

/// Since 1970, UTC; a clock that may be set while a run goes on.
inline double wallSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Steady, in nanoseconds; the same for all processes of a machine.
inline int64_t steadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace meshwork::runtime
