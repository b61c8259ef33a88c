// What IR text must not hold before the parser may see it. The parser calls
// itself for each level of brackets, so a text of a few hundred kilobytes can
// end a process by the size of its stack alone. It also takes a time quadratic
// in a number's digits.
//
//   if (std::optional<std::string> why = whyNotParsed(text)) // refuse it
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace meshwork::analysis {

/// Levels that no model and no phase comes near: a model's types nest 3 deep,
/// its regions 4.
inline constexpr int maxNesting = 256;
/// Of one number; an i64 has 19, and tensors of numbers are in strings.
inline constexpr int maxDigits = 1000;

/// What is wrong, for a message; nothing of a text that may be parsed. Brackets
/// and digits in strings and comments do not count, nor does the `>` of `->`
/// and `>=`.
std::optional<std::string> whyNotParsed(std::string_view text);

} // namespace meshwork::analysis
