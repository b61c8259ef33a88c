// Which of two plans is better: the one order of everything that is "auto", of
// advice and of a search over specs.
#pragma once

#include <cstdint>
#include <optional>

namespace meshwork::driver {

/// Whether `a` is better than `b`. Each has `bytes`, of the rank that needs
/// most, and `seconds` of a step. What needs at most `limit` bytes is better
/// than what needs more. Of two that fit, the faster is better, on a tie the
/// smaller; of two that do not, the smaller. Without a limit all fit.
template <typename Measured>
bool isBetter(const Measured &a, const Measured &b,
              std::optional<uint64_t> limit) {
  bool fits = !limit || a.bytes <= *limit;
  if (fits != (!limit || b.bytes <= *limit))
    return fits;
  if (fits && a.seconds != b.seconds)
    return a.seconds < b.seconds;
  return a.bytes < b.bytes;
}

} // namespace meshwork::driver
