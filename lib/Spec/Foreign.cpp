#include "lib/Spec/Foreign.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace meshwork::spec {
namespace {

std::string lastPart(const std::string &path) {
  return path.substr(path.rfind('.') + 1);
}

const ForeignKey *findForeign(const std::string &path) {
  static const std::map<std::string, const ForeignKey *> known = [] {
    std::map<std::string, const ForeignKey *> all;
    for (const ForeignKey &one : foreignKeys())
      all.emplace(plainOf(one.word), &one);
    return all;
  }();
  for (const std::string &word : {path, lastPart(path)})
    if (auto one = known.find(plainOf(word)); one != known.end())
      return one->second;
  return nullptr;
}

/// The line with the number that stands there in place of the example's.
std::string withNumber(std::string line, const Value &value) {
  constexpr const char *digits = "0123456789";
  size_t last = line.find_last_of(digits);
  bool endsInNumber = last != line.npos && (last + 1 == line.size() ||
                                            line.substr(last + 1) == "\"]");
  if (!endsInNumber || value.kind != Value::Kind::integer || value.integer < 0)
    return line;
  size_t first = line.find_last_not_of(digits, last) + 1;
  return line.replace(first, last + 1 - first, std::to_string(value.integer));
}

std::string hintOf(const ForeignKey &found, const Value &value) {
  std::string write = withNumber(found.write, value);
  if (write.starts_with("--"))
    return "; a run decides it, not a plan: meshwork-run " + write;
  return write.empty() ? std::string("; ") + found.note
                       : "; write " + write + found.note;
}

} // namespace

std::string plainOf(std::string_view word) {
  std::string plain;
  for (unsigned char c : word)
    if (std::isalnum(c) || c == '+' || c == '.')
      plain += static_cast<char>(std::tolower(c));
  return plain;
}

std::string hintOfKey(const std::string &path, const Value &value) {
  const ForeignKey *found = findForeign(path);
  return found ? hintOf(*found, value) : "";
}

std::string hintOfValue(const std::string &key, const Value &value) {
  if (value.kind != Value::Kind::string)
    return "";
  for (const ForeignValue &one : foreignValues())
    if (key == one.key && plainOf(value.text) == plainOf(one.word))
      return *one.write ? std::string("; write ") + one.write + one.note
                        : std::string("; ") + one.note;
  return "";
}

} // namespace meshwork::spec
