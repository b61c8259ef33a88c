// Text from outside, made fit to print: names, paths, values and whole messages
// reach a terminal through these and through nothing else.
//
//   "found axis " + quote(name)           a name inside a message
//   fputs(printable(message).c_str(), f)  a whole message, on its way out
//
// Shown as \xNN: bytes that a terminal would obey, bytes that are no UTF-8, and
// the letters that change the order in which others are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshwork {

namespace detail {

/// Whether a terminal only shows `letter`: no control of Unicode (C1, line and
/// paragraph separators, marks of direction) and no half of a surrogate pair.
constexpr bool isShown(uint32_t letter) {
  return letter >= 0xa0 && letter <= 0x10ffff && letter != 0x200e &&
         letter != 0x200f && letter != 0xfeff &&
         !(letter >= 0x2028 && letter <= 0x202e) &&
         !(letter >= 0x2066 && letter <= 0x2069) &&
         !(letter >= 0xd800 && letter <= 0xdfff);
}

/// Bytes of the letter beyond ASCII that stands at `at`; 0 when it must not be
/// printed as it is.
constexpr size_t bytesOfLetter(std::string_view text, size_t at) {
  auto first = static_cast<unsigned char>(text[at]);
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes > text.size() - at)
    return 0;
  uint32_t letter = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xc0) != 0x80)
      return 0;
    letter = letter << 6 | (next & 0x3f);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return letter >= smallest[bytes] && isShown(letter) ? bytes : 0;
}

inline void appendEscaped(std::string &to, char c) {
  constexpr char digits[] = "0123456789abcdef";
  auto byte = static_cast<unsigned char>(c);
  if (c == '\n' || c == '\t' || c == '\r')
    to += {'\\', c == '\n' ? 'n' : c == '\t' ? 't' : 'r'};
  else
    to += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

/// Escapes what must not be printed and what `also` holds, and leaves `keep`.
inline std::string escape(std::string_view text, std::string_view also,
                          std::string_view keep) {
  std::string result;
  result.reserve(text.size() + 2);
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    size_t bytes =
        static_cast<unsigned char>(c) < 0x80
            ? size_t{(c >= 0x20 && c != 0x7f) || keep.find(c) != keep.npos}
            : bytesOfLetter(text, at);
    if (also.find(c) != also.npos)
      result += '\\';
    if (bytes == 0)
      appendEscaped(result, c);
    else
      result.append(text, at, bytes);
    at += bytes == 0 ? 1 : bytes;
  }
  return result;
}

/// At most `bytes` of `text`, and no part of a letter at the end.
constexpr std::string_view beginning(std::string_view text, size_t bytes) {
  if (text.size() <= bytes)
    return text;
  for (int i = 0; i < 3 && bytes > 0; ++i)
    bytes -= (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80;
  return text.substr(0, bytes);
}

} // namespace detail

/// Lines and tabs stay.
inline std::string printable(std::string_view text) {
  return detail::escape(text, "", "\n\t");
}

/// On one line; of more than `longest` bytes the beginning and "...".
inline std::string onOneLine(std::string_view text, size_t longest = SIZE_MAX) {
  return detail::escape(detail::beginning(text, longest), "", "") +
         (text.size() > longest ? "..." : "");
}

/// On one line in double quotes, at most about 120 bytes.
inline std::string quote(std::string_view text) {
  constexpr size_t longest = 120;
  return '"' + detail::escape(detail::beginning(text, longest), "\"\\", "") +
         (text.size() > longest ? "...\"" : "\"");
}

} // namespace meshwork
