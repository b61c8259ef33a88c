// The little JSON that is written here.
#pragma once

#include "absl/strings/str_format.h"
#include "meshwork/Plan/Plan.h"
#include <cmath>
#include <optional>
#include <string>

namespace meshwork::runtime {

/// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become
/// U+FFFD, since a plan's names come from a file.
std::string jsonString(const flatbuffers::String *text);

/// `value` with `digits` significant digits. JSON has no number that is not
/// finite: it becomes the string "NaN", "Infinity" or "-Infinity", which
/// Python's float() and JavaScript's Number() take.
inline std::string jsonNumber(double value, int digits) {
  if (std::isfinite(value))
    return absl::StrFormat("%.*g", digits, value);
  return std::isnan(value) ? R"("NaN")"
         : value > 0       ? R"("Infinity")"
                           : R"("-Infinity")";
}
/// The same; null where there is no value.
inline std::string jsonNumber(std::optional<double> value, int digits) {
  return value ? jsonNumber(*value, digits) : "null";
}

} // namespace meshwork::runtime
