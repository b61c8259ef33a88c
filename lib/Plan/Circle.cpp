#include "lib/Plan/Circle.h"
#include "absl/strings/str_cat.h"
#include <array>

namespace meshwork::plan {
namespace {
constexpr size_t numColumns = 5;
using Cells = std::array<std::string, numColumns>;

/// Numbers stand to the right.
bool isOfNumbers(size_t column) { return column < 2; }

std::string padded(const std::string &text, size_t width, bool toTheRight) {
  std::string space(width - std::min(width, text.size()), ' ');
  return toTheRight ? space + text : text + space;
}

std::string draw(const std::vector<Cells> &rows) {
  std::array<size_t, numColumns> width{};
  std::array<bool, numColumns> isUsed{};
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t i = 0; i < numColumns; ++i) {
      width[i] = std::max(width[i], rows[row][i].size());
      isUsed[i] |= row > 0 && !rows[row][i].empty(); // the first is the head
    }
  std::string text;
  for (const Cells &row : rows) {
    std::string line;
    for (size_t i = 0; i < numColumns; ++i)
      if (isUsed[i])
        absl::StrAppend(&line, "  ", padded(row[i], width[i], isOfNumbers(i)));
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, "\n", line);
  }
  return text;
}
} // namespace

std::string circleText(bool isShortest, std::vector<CircleRow> rows) {
  std::vector<Cells> cells = {
      {"rank", "action", "", "waits for", "because it"}};
  for (CircleRow &row : rows)
    cells.push_back({std::move(row.rank), std::move(row.action),
                     std::move(row.what), std::move(row.waitsFor),
                     std::move(row.why)});
  return absl::StrCat("each of these waits for the next, the last for the "
                      "first (",
                      isShortest ? "the shortest such cycle" : "one such cycle",
                      ")", draw(cells));
}

} // namespace meshwork::plan
