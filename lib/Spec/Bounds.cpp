// Refuses some texts before they are parsed as TOML, and says what is likely
// wrong in one that does not parse.
#include "lib/Spec/Document.h"
#include "meshwork/Text/Counted.h"

#include <algorithm>
#include <cctype>

namespace meshwork::spec {
namespace {

// A spec is a page of text; this keeps a wrong file from being read for long.
constexpr size_t maxBytes = 1 << 20;
// A spec has 2 parts in a key, and an array of tables.
constexpr int maxParts = 16, maxNesting = 16;

/// The end of the string that opens at `at`. A newline ends it too: lines of a
/// longer string are taken for keys, and are none that a spec has.
size_t endOfString(std::string_view text, size_t at) {
  char mark = text[at];
  for (++at; at < text.size() && text[at] != mark && text[at] != '\n'; ++at)
    if (text[at] == '\\' && mark == '"')
      ++at;
  return at;
}

} // namespace

namespace {
/// The first letter of a word that stands in no quotes, and where it ends.
std::string_view bareWord(std::string_view text) {
  for (size_t i = 0; i < text.size() && text[i] != '#'; ++i) {
    if (text[i] == '"' || text[i] == '\'')
      i = endOfString(text, i);
    else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      size_t end = text.find_first_of(",]} #\r", i);
      return text.substr(i, std::min(end, text.size()) - i);
    }
  }
  return {};
}
} // namespace

std::string hintOfSyntax(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.starts_with("{"))
    return "; this looks like JSON, and a spec is TOML: [mesh], then axes = "
           "[\"dp=2\"]";
  size_t equals = line.find('='), colon = line.find(':');
  if (colon < equals && !line.starts_with("["))
    return "; TOML has key = value";
  if (equals == line.npos || line.starts_with("["))
    return "";
  std::string_view value = line.substr(equals + 1), word = bareWord(value);
  if (word == "True" || word == "False")
    return "; TOML has true and false in lower case";
  if (word.empty() || word == "true" || word == "false")
    return "";
  return "; text stands in quotes, like " + quote(word);
}

std::optional<std::string> whyNotToml(std::string_view text) {
  constexpr std::string_view opening = "[{", closing = "]}", between = "=,\n";
  if (text.size() > maxBytes)
    return "is " + counted(text.size(), "byte") +
           ", expected a spec of at most " + std::to_string(maxBytes);
  int depth = 0, dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' || c == '\'')
      i = endOfString(text, i);
    else if (c == '#')
      i = std::min(text.find('\n', i), text.size()) - 1;
    else if (opening.find(c) != opening.npos)
      dots = 0, ++depth;
    else if (closing.find(c) != closing.npos)
      dots = 0, depth -= depth > 0;
    else if (between.find(c) != between.npos)
      dots = 0;
    else
      dots += c == '.';
    if (dots >= maxParts)
      return "has a key of more than " + counted(maxParts, "part") +
             ", expected at most 2";
    if (depth > maxNesting)
      return "nests brackets deeper than " + std::to_string(maxNesting) +
             " levels";
  }
  return std::nullopt;
}

} // namespace meshwork::spec
