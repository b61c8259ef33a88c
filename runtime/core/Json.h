// The little JSON that is written here.
#pragma once

#include "absl/strings/str_format.h"
#include "meshwork/Plan/Plan.h"
#include <cmath>
#include <string>

namespace meshwork::runtime {

/// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become
/// U+FFFD, since a plan's names come from a file.
std::string jsonString(const flatbuffers::String *text);

/// `value` with `digits` significant digits, null when it is not finite.
inline std::string jsonNumber(double value, int digits) {
  return std::isfinite(value) ? absl::StrFormat("%.*g", digits, value) : "null";
}

} // namespace meshwork::runtime
