#include "passes/analysis/Nesting.h"

namespace meshwork::analysis {
namespace {
constexpr std::string_view opening = "([{<", closing = ")]}>";

/// The end of the string that opens at `at`. A newline ends it too, as in IR.
size_t endOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
  return at;
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }
} // namespace

std::optional<std::string> whyNotParsed(std::string_view text) {
  int depth = 0, digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    digits = isDigit(c) ? digits + 1 : 0;
    if (digits > maxDigits)
      return "has a number of more than " + std::to_string(maxDigits) +
             " digits";
    if (c == '"')
      i = endOfString(text, i);
    else if (c == '/' && next == '/')
      while (i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
    else if ((c == '-' && next == '>') || (c == '>' && next == '='))
      ++i;
    else if (opening.find(c) != opening.npos && ++depth > maxNesting)
      return "nests brackets deeper than " + std::to_string(maxNesting) +
             " levels";
    else if (closing.find(c) != closing.npos && depth > 0)
      --depth;
  }
  return std::nullopt;
}

} // namespace meshwork::analysis
