#include "lib/Schedules/Svg.h"

#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Escape.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

// About 150 bytes each: a picture of a few MB at most.
constexpr size_t mostDrawn = 40'000;
constexpr double rowHeight = 22, left = 64, letterWidth = 6.5;
constexpr double narrowest = 480, widest = 16'000;
// Of a line of text, and of a letter in it, which is mostly less wide.
constexpr double lineHeight = 14, textWidth = 6;
// Of the usual action, so that its name fits.
constexpr double usualWidth = 30;

constexpr std::string_view style =
    "<style>text{font:11px sans-serif;fill:#111}"
    ".F{fill:#9ecbff}.B{fill:#9fdfb0}.I{fill:#7fd6d0}.W{fill:#ffd08a}"
    "rect{stroke:#fff;stroke-width:.5}.idle{fill:#eee}.paper{fill:#fff}"
    "</style>\n";

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : onOneLine(text, 200))
    result += c == '&'   ? "&amp;"
              : c == '<' ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

/// Lines of at most `most` letters, cut between words where there are any.
std::vector<std::string> wrapped(std::string_view text, size_t most) {
  std::vector<std::string> lines;
  while (text.size() > most) {
    size_t space = text.rfind(' ', most);
    size_t end = space == text.npos || space == 0 ? most : space;
    lines.emplace_back(detail::beginning(text, end));
    text.remove_prefix(std::max<size_t>(lines.back().size(), 1));
    text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  }
  lines.emplace_back(text);
  return lines;
}

class Picture {
public:
  Picture(const Table &table, const Timeline &timeline)
      : table(table), timeline(timeline) {
    size_t actions = 0;
    for (; rows < table.ranks.size(); ++rows) {
      actions += static_cast<size_t>(
          std::count_if(table.ranks[rows].begin(), table.ranks[rows].end(),
                        [](const Action &a) { return isCompute(a.kind); }));
      if (rows > 0 && actions > mostDrawn)
        break;
    }
    size_t perRank = std::max<size_t>(actions / std::max<size_t>(rows, 1), 1);
    width = std::clamp(static_cast<double>(perRank) * usualWidth, narrowest,
                       widest);
    scale = timeline.makespan > 0 ? width / timeline.makespan : 0;
  }

  std::string draw(std::string_view title) {
    auto most = static_cast<size_t>(width / textWidth);
    std::vector<std::string> head = wrapped(onOneLine(title, 200), most);
    top = 20 + lineHeight * static_cast<double>(head.size());
    addLines(20, head);
    for (size_t rank = 0; rank < rows; ++rank)
      addRank(rank);
    double end = top + static_cast<double>(rows) * rowHeight + 18;
    std::vector<std::string> below = wrapped(foot(), most);
    addLines(end, below);
    return absl::StrCat(
        opening(end + lineHeight * static_cast<double>(below.size())),
        "<title>", escaped(title), "</title>\n", std::string(style),
        "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", text,
        "</svg>\n");
  }

private:
  std::string opening(double height) const {
    double wide = left + width + 10;
    return absl::StrCat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"", wide,
        "\" height=\"", height, "\" viewBox=\"0 0 ", wide, " ", height,
        "\">\n");
  }

  void addLines(double y, const std::vector<std::string> &lines) {
    for (const std::string &line : lines) {
      addText(left, y, escaped(line));
      y += lineHeight;
    }
  }

  void addText(double x, double y, const std::string &what) {
    absl::StrAppend(&text, "<text x=\"", x, "\" y=\"", y, "\">", what,
                    "</text>\n");
  }

  void addRank(size_t rank) {
    double y = top + static_cast<double>(rank) * rowHeight;
    addText(6, y + 15, absl::StrCat("rank ", rank));
    absl::StrAppend(&text, "<rect class=\"idle\" x=\"", left, "\" y=\"", y,
                    "\" width=\"", width, "\" height=\"", rowHeight, "\"/>\n");
    const std::vector<Action> &actions = table.ranks[rank];
    size_t begin = drawn;
    for (size_t i = 0, end; i < actions.size(); i = end) {
      end = endOfGroup(actions, i);
      if (!isCompute(actions[i].kind))
        continue;
      isCut = drawn - begin >= mostDrawn; // of a rank with that many
      if (isCut)
        return;
      for (size_t j = i; j < end; ++j, ++drawn)
        addAction(rank, j, y, j - i, end - i);
    }
  }

  /// What starts together shares the row's height.
  void addAction(size_t rank, size_t position, double y, size_t part,
                 size_t parts) {
    Timeline::Span span = timeline.spans[rank][position];
    const Action &action = table.ranks[rank][position];
    double x = left + span.begin * scale,
           wide = (span.end - span.begin) * scale;
    double high = rowHeight / static_cast<double>(parts);
    y += high * static_cast<double>(part);
    std::string name = schedules::text(action);
    absl::StrAppend(&text, "<rect class=\"", std::string(letters(action.kind)),
                    "\" x=\"", x, "\" y=\"", y, "\" width=\"", wide,
                    "\" height=\"", high, "\"><title>", name, ", rank ", rank,
                    ": ", span.begin, " to ", span.end, "</title></rect>\n");
    if (parts == 1 && wide > letterWidth * static_cast<double>(name.size()))
      addText(x + 3, y + 15, name);
  }

  std::string foot() const {
    std::string foot = absl::StrCat(
        "makespan ", timeline.makespan, ", bubble ",
        timeline.bubbleFraction * 100, " % of the longest rank's time, idle ",
        timeline.idleFraction * 100,
        " % of all ranks' time. F: forward, B: backward, I: its part for the "
        "input, W: for the weights");
    if (rows < table.ranks.size())
      absl::StrAppend(&foot, ". Ranks ", rows, " to ", table.ranks.size() - 1,
                      " are left out");
    if (isCut)
      absl::StrAppend(&foot, ". Only the first ", drawn, " actions are drawn");
    return foot;
  }

  const Table &table;
  const Timeline &timeline;
  size_t rows = 0, drawn = 0;
  bool isCut = false;
  double width = 0, scale = 0, top = 0;
  std::string text;
};

} // namespace

std::string svg(const Table &table, const Timeline &timeline,
                std::string_view title) {
  return Picture(table, timeline).draw(title);
}

} // namespace meshwork::schedules
