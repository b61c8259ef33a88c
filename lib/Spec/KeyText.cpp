// Values of keys as text, both ways.
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

std::optional<Axis> parseAxis(const std::string &text) {
  constexpr uint32_t largest = 1 << 20;
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals > 32)
    return std::nullopt;
  Axis axis{text.substr(0, equals), 0};
  for (char c : axis.name)
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
      return std::nullopt;
  if (!(axis.name[0] >= 'a' && axis.name[0] <= 'z'))
    return std::nullopt;
  const char *end = text.data() + text.size();
  auto [rest, error] =
      std::from_chars(text.data() + equals + 1, end, axis.size);
  if (error != std::errc() || rest != end || axis.size == 0 ||
      axis.size > largest)
    return std::nullopt;
  return axis;
}

} // namespace meshwork::spec
