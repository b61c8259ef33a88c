// Values of keys as text, both ways.
#include <algorithm>
#include <charconv>

#include "lib/Spec/Keys.h"

namespace meshwork::spec {

std::string tomlString(const std::string &text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      result += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    else
      result += c;
  }
  return result + '"';
}

std::string tomlText(const std::string &text) {
  if (text.find('\n') == std::string::npos)
    return tomlString(text);
  // Line by line, as TOML drops the line end that follows the opening quotes.
  std::string result = "\"\"\"";
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = tomlString(text.substr(begin, end - begin));
    result += "\n" + line.substr(1, line.size() - 2);
    begin = end + 1;
  }
  return result + "\"\"\"";
}

std::string tomlStrings(const std::vector<std::string> &texts) {
  std::string result = "[";
  for (size_t i = 0; i < texts.size(); ++i)
    result += (i > 0 ? ", " : "") + tomlString(texts[i]);
  return result + "]";
}

std::optional<std::vector<std::string>> stringsOf(const Value &value) {
  if (value.kind != Value::Kind::array)
    return std::nullopt;
  std::vector<std::string> texts;
  for (const Value &item : value.items) {
    if (item.kind != Value::Kind::string)
      return std::nullopt;
    texts.push_back(item.text);
  }
  return texts;
}

/// Lower-case letters, digits and '_', a letter first, at most 32.
static bool isAxisName(const std::string &name) {
  auto isLetter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 32 && isLetter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return isLetter(c) || (c >= '0' && c <= '9') || c == '_';
         });
}

std::optional<Axis> parseAxis(const std::string &text, std::string &expected) {
  constexpr uint32_t largest = 1 << 20;
  size_t equals = text.find('=');
  expected = R"(a name and a size, like "dp=2")";
  if (equals == std::string::npos)
    return std::nullopt;
  Axis axis{text.substr(0, equals), 0};
  expected = "a name of at most 32 lower-case letters, digits and _, a letter "
             R"(first, like "dp=2")";
  if (!isAxisName(axis.name))
    return std::nullopt;
  expected = R"(a size from 1 to 1048576, like "dp=2")";
  const char *end = text.data() + text.size();
  auto [rest, error] =
      std::from_chars(text.data() + equals + 1, end, axis.size);
  if (error != std::errc() || rest != end || axis.size == 0 ||
      axis.size > largest)
    return std::nullopt;
  return axis;
}

} // namespace meshwork::spec
