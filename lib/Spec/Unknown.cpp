#include "lib/Spec/Unknown.h"

#include <algorithm>
#include <utility>

#include "lib/Spec/Foreign.h"

namespace meshwork::spec {
namespace {

bool isSectionName(const std::string &name) {
  const std::vector<std::string> &sections = allSections();
  return std::find(sections.begin(), sections.end(), name) != sections.end();
}

bool isTable(const Entry &entry) {
  return entry.value.kind == Value::Kind::table;
}

/// The key of another section that has this name, where one alone has it.
std::string sameElsewhere(const std::string &path) {
  const Key *found = nullptr;
  for (const Key &key : allKeys())
    if (path.ends_with("." + key.name)) {
      if (found)
        return "";
      found = &key;
    }
  return found ? "; did you mean " + quote(found->path()) + "?" : "";
}

/// The known name nearest to `path`, among sections for a section, else among
/// the keys.
std::string nearest(const std::string &path) {
  size_t dot = path.find('.');
  if (dot == std::string::npos)
    return suggestion(path, allSections());
  std::string section = path.substr(0, dot + 1);
  std::vector<std::string> here, elsewhere;
  for (const Key &key : allKeys())
    (key.path().starts_with(section) ? here : elsewhere).push_back(key.path());
  for (std::string hint : {suggestion(path, here), sameElsewhere(path)})
    if (!hint.empty())
      return hint;
  return suggestion(path, elsewhere);
}

/// Whether some key of an unknown table says more than the table could.
bool hasForeignKeys(const std::string &table, const Document &document) {
  return std::any_of(document.begin(), document.end(), [&](const auto &one) {
    return one.first.starts_with(table + ".") && !isTable(one.second) &&
           !hintOfKey(one.first, one.second.value).empty();
  });
}

/// `[dp=2, tp=2]` with what is between its commas in quotes.
std::string withQuotes(const std::string &list) {
  std::string text = "[", word;
  for (char c : list.substr(1) + ",")
    if (c != ',' && c != ']')
      word += c == ' ' ? "" : std::string(1, c);
    else if (!word.empty())
      text += (text.size() > 1 ? ", " : "") + quote(std::exchange(word, ""));
  return text + "]";
}

void report(const std::string &path, const Entry &entry,
            Diagnostics &diagnostics) {
  std::string what =
      isTable(entry) ? "unknown table [" + path + "]" : "unknown key " + path;
  std::string hint = hintOfKey(path, entry.value);
  diagnostics.push_back({Severity::error, entry.key,
                         what + (hint.empty() ? nearest(path) : hint)});
}

} // namespace

bool checkUnknown(const std::string &path, const Entry &entry,
                  const Document &document, Diagnostics &diagnostics) {
  size_t dot = path.rfind('.');
  std::string around = dot == std::string::npos ? "" : path.substr(0, dot);
  if (findKey(around))
    return false; // a part of its value
  if (isSectionName(path)) {
    if (isTable(entry))
      return false;
    diagnostics.push_back({Severity::error, entry.value.where,
                           path + ": found " + entry.value.found() +
                               ", expected a table [" + path + "]"});
    return true;
  }
  if (findKey(path))
    return false;
  bool isOfUnknown = document.contains(around) && !isSectionName(around);
  bool keysAreTold = isTable(entry) && hasForeignKeys(path, document);
  bool tableIsTold = isOfUnknown && !hasForeignKeys(around, document);
  if (!keysAreTold && !tableIsTold)
    report(path, entry, diagnostics);
  return true;
}

std::string hintOfChoice(const Key &key, const Value &value) {
  // What a shell leaves of a=["dp=2"] without quotes around it.
  if (value.kind == Value::Kind::string && value.text.starts_with("[") &&
      value.where.file.starts_with("--set "))
    return "; the shell removes quotes: write --set '" + key.path() + "=" +
           withQuotes(value.text) + "'";
  std::string hint = hintOfValue(key.path(), value);
  if (!hint.empty() || value.kind != Value::Kind::string)
    return hint;
  for (const std::string &choice : key.choices)
    if (plainOf(choice) == plainOf(value.text))
      return "; write " + quote(choice);
  return suggestion(value.text, key.choices);
}

} // namespace meshwork::spec
