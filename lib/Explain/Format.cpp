#include "lib/Explain/Format.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
/// Three digits that count, with the largest unit that keeps the number
/// above 1.
std::string scaled(double number, double base,
                   absl::Span<const char *const> units) {
  size_t unit = 0;
  while (number >= base && unit + 1 < units.size()) {
    number /= base;
    ++unit;
  }
  if (unit == 0)
    return absl::StrFormat("%.0f%s%s", number, *units[0] ? " " : "", units[0]);
  return absl::StrFormat("%.*f %s",
                         number < 10    ? 2
                         : number < 100 ? 1
                                        : 0,
                         number, units[unit]);
}
} // namespace

std::string bytesText(uint64_t bytes) {
  static constexpr const char *units[] = {"B",   "KiB", "MiB",
                                          "GiB", "TiB", "PiB"};
  return scaled(static_cast<double>(bytes), 1024, units);
}

std::string exactBytesText(uint64_t bytes) {
  std::string exact = counted(bytes, "byte");
  return bytes < 1024 ? exact : bytesText(bytes) + " = " + exact;
}

std::string countText(double count) {
  static constexpr const char *units[] = {"",  "k", "M", "G",
                                          "T", "P", "E", "Z"};
  return scaled(count, 1000, units);
}

std::string percentText(uint64_t part, uint64_t whole) {
  if (whole == 0)
    return "-";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) /
                                        static_cast<double>(whole));
}

std::string clean(std::string_view text) {
  return onOneLine(text, /*longest=*/400);
}

std::string clean(const flatbuffers::String *text, std::string_view missing) {
  return text && text->size() > 0
             ? clean(std::string_view(text->c_str(), text->size()))
             : std::string(missing);
}

std::string typeText(plan::DType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(plan::EnumNameDType(dtype), "[",
                      absl::StrJoin(shape, ","), "]");
}

Table::Table(std::vector<std::string> titles) {
  for (std::string &title : titles) {
    right.push_back(!title.empty() && title[0] == '>');
    head.push_back(right.back() ? title.substr(1) : std::move(title));
  }
}

void Table::add(std::vector<std::string> row) {
  rows.push_back(std::move(row));
}

std::string Table::render() const {
  std::vector<size_t> widths(head.size());
  auto widen = [&](const std::vector<std::string> &row) {
    for (size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  };
  widen(head);
  for (const std::vector<std::string> &row : rows)
    widen(row);
  std::string result;
  auto line = [&](const std::vector<std::string> &row) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) {
      std::string space(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&text, "  ", right[i] ? space : "", row[i],
                      right[i] ? "" : space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    absl::StrAppend(&result, text, "\n");
  };
  line(head);
  for (const std::vector<std::string> &row : rows)
    line(row);
  return result;
}

} // namespace meshwork::explain
