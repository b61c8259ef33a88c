#include "lib/Spec/Diagnostic.h"

#include <algorithm>
#include <numeric>

namespace meshwork {
namespace {

constexpr size_t longestCompared = 100;

/// Insertions, deletions, replacements and swaps of neighbours from `a` to `b`
/// (Damerau, Comm. ACM 7 (1964) 171), row by row.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] =
          std::min({next[j] + 1, row[j + 1] + 1, row[j] + (a[i] != b[j])});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = row;
    std::swap(row, next);
  }
  return row.back();
}

} // namespace

std::string Location::text() const {
  std::string text = file;
  if (line > 0)
    text += ":" + std::to_string(line);
  if (column > 0)
    text += ":" + std::to_string(column);
  return text;
}

std::string Diagnostic::text() const {
  const char *kind = severity == Severity::error     ? ": error: "
                     : severity == Severity::warning ? ": warning: "
                                                     : ": note: ";
  std::string text = onOneLine(where.text() + kind + message);
  return details.empty() ? text : text + "\n" + printable(details);
}

bool hasErrors(const Diagnostics &diagnostics) {
  return std::any_of(
      diagnostics.begin(), diagnostics.end(),
      [](const Diagnostic &d) { return d.severity == Severity::error; });
}

std::string textOf(const Diagnostics &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics)
    text += diagnostic.text() + "\n";
  return text;
}

std::string suggestion(std::string_view found,
                       const std::vector<std::string> &candidates) {
  if (found.size() > longestCompared)
    return "";
  const std::string *nearest = nullptr;
  // Up to a third of the letters wrong is a typing mistake, more another word.
  size_t best = std::max<size_t>(1, found.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(found, candidate);
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest ? "; did you mean " + quote(*nearest) + "?" : "";
}

} // namespace meshwork
