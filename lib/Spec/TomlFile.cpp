#include "lib/Spec/TomlFile.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace meshwork {

void sortByPlace(Diagnostics &diagnostics) {
  std::sort(diagnostics.begin(), diagnostics.end(),
            [](const Diagnostic &a, const Diagnostic &b) {
              return std::tie(a.where.line, a.where.column, a.message) <
                     std::tie(b.where.line, b.where.column, b.message);
            });
}

std::string numberText(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

std::string tomlNumber(double value) {
  std::string text = numberText(value);
  // TOML tells a float from an integer by these.
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

} // namespace meshwork
