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
constexpr double rowHeight = 22, top = 34, left = 64, letterWidth = 6.5;
constexpr double narrowest = 480, widest = 16'000;
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
    double height = top + static_cast<double>(rows) * rowHeight + 30;
    text = absl::StrCat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"",
        left + width + 10, "\" height=\"", height, "\" viewBox=\"0 0 ",
        left + width + 10, " ", height, "\">\n<title>", escaped(title),
        "</title>\n", std::string(style),
        "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    addText(left, 20, escaped(title));
    for (size_t rank = 0; rank < rows; ++rank)
      addRank(rank);
    addText(left, height - 12, foot());
    return text + "</svg>\n";
  }

private:
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
        timeline.bubbleFraction * 100,
        " % of the longest rank's time. F: "
        "forward, B: backward, I: its part for the input, W: for the weights");
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
  double width = 0, scale = 0;
  std::string text;
};

} // namespace

std::string svg(const Table &table, const Timeline &timeline,
                std::string_view title) {
  return Picture(table, timeline).draw(title);
}

} // namespace meshwork::schedules
