// Arithmetic on numbers that come from a file: every result is checked, so a
// hostile size can become an error but never a small allocation.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <cstdint>
#include <string>

namespace meshwork::plan {

/// False, and `out` unspecified, when the result does not fit.
[[nodiscard]] inline bool checkedAdd(uint64_t a, uint64_t b, uint64_t &out) {
  return !__builtin_add_overflow(a, b, &out);
}
[[nodiscard]] inline bool checkedMul(uint64_t a, uint64_t b, uint64_t &out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// `value` rounded up to a multiple of `unit`, false when that does not fit.
[[nodiscard]] inline bool checkedRoundUp(uint64_t value, uint64_t unit,
                                         uint64_t &out) {
  if (!checkedAdd(value, unit - 1, out))
    return false;
  out -= out % unit;
  return true;
}

/// A bad plan, weight or token file.
template <typename... Parts> absl::Status bad(const Parts &...parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

} // namespace meshwork::plan
