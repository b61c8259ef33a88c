#include "lib/Schedules/Grid.h"

#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>

namespace meshwork::schedules {
namespace {

struct Block {
  Timeline::Span span;
  std::string name;
  char letter = ' ';
};

/// Without the stage where a rank has but one.
std::string nameOf(const Table &table, const Action &action) {
  std::string name = text(action);
  return table.rankOf.size() > table.ranks.size()
             ? name
             : name.substr(name.find_first_not_of("0123456789"));
}

/// What starts together shares its time, side by side.
std::vector<Block> blocksOf(const Table &table, const Timeline &timeline,
                            size_t rank) {
  const std::vector<Action> &actions = table.ranks[rank];
  std::vector<Block> blocks;
  for (size_t i = 0, end; i < actions.size(); i = end) {
    end = endOfGroup(actions, i);
    if (!isCompute(actions[i].kind))
      continue;
    Timeline::Span whole = timeline.spans[rank][i];
    double part = (whole.end - whole.begin) / static_cast<double>(end - i);
    for (size_t j = i; j < end; ++j) {
      double begin = whole.begin + part * static_cast<double>(j - i);
      blocks.push_back({{begin, begin + part},
                        nameOf(table, actions[j]),
                        letters(actions[j].kind)[0]});
    }
  }
  return blocks;
}

char asLower(const Block &block) {
  return static_cast<char>(block.letter - 'A' + 'a');
}

class Drawing {
public:
  Drawing(const Table &table, const Timeline &timeline,
          const GridOptions &options)
      : makespan(timeline.makespan), numRanks(table.ranks.size()) {
    rows = std::min(numRanks, options.rows);
    head = absl::StrCat("rank ", rows - 1, " ").size();
    columns = std::max<size_t>(options.columns, 40) - head;
    for (size_t rank = 0; rank < rows; ++rank)
      blocks.push_back(blocksOf(table, timeline, rank));
    chooseScale();
  }

  std::string text() const {
    std::string text;
    for (size_t rank = 0; rank < rows; ++rank)
      absl::StrAppend(&text,
                      absl::StrFormat("%-*s", static_cast<int>(head),
                                      absl::StrCat("rank ", rank)),
                      line(blocks[rank]), "\n");
    return absl::StrCat(text, notes());
  }

private:
  /// Wide enough for names, else for the line, but the usual action must not
  /// vanish. Names are shown where the usual action has room for its own.
  void chooseScale() {
    std::vector<double> lengths;
    size_t longest = 0;
    for (const std::vector<Block> &row : blocks)
      for (const Block &block : row) {
        if (block.span.end > block.span.begin)
          lengths.push_back(block.span.end - block.span.begin);
        longest = std::max(longest, block.name.size());
      }
    if (lengths.empty())
      return;
    auto middle =
        lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    double usual = *middle;
    double shortest = *std::min_element(lengths.begin(), lengths.end());
    double named = static_cast<double>(longest + 1) / shortest;
    double fitting = static_cast<double>(columns) / makespan;
    scale = std::max(std::min(named, fitting), 1 / usual);
    showsNames = std::round(usual * scale) > static_cast<double>(longest);
  }

  size_t columnOf(double time) const {
    double column = std::round(time * scale);
    return column >= static_cast<double>(columns) ? columns
                                                  : static_cast<size_t>(column);
  }

  std::string line(const std::vector<Block> &row) const {
    std::string line(columnOf(makespan), '.');
    for (const Block &block : row) {
      size_t begin = columnOf(block.span.begin), end = columnOf(block.span.end);
      size_t wide = end - begin;
      if (showsNames && wide > block.name.size())
        line.replace(begin, wide,
                     block.name + std::string(wide - block.name.size(), ' '));
      else if (wide > 0)
        line.replace(begin, wide,
                     block.letter + std::string(wide - 1, asLower(block)));
      if (showsNames && wide > block.name.size() + 2)
        line.replace(begin + block.name.size(), wide - block.name.size() - 1,
                     std::string(wide - block.name.size() - 1, '-'));
    }
    return line;
  }

  std::string notes() const {
    std::string text;
    if (rows < numRanks)
      absl::StrAppend(&text, "(ranks ", rows, " to ", numRanks - 1,
                      " are left out)\n");
    if (scale == 0)
      return text;
    absl::StrAppend(&text, "a column is ", 1 / scale,
                    " of time, a point is idle");
    if (makespan * scale > static_cast<double>(columns) + 1)
      absl::StrAppend(&text, "; cut at ", static_cast<double>(columns) / scale,
                      " of ", makespan, ", --svg draws all");
    return text + "\n";
  }

  double makespan = 0, scale = 0;
  bool showsNames = false;
  size_t numRanks = 0, rows = 0, head = 0, columns = 0;
  std::vector<std::vector<Block>> blocks;
};

} // namespace

std::string grid(const Table &table, const Timeline &timeline,
                 const GridOptions &options) {
  return Drawing(table, timeline, options).text();
}

} // namespace meshwork::schedules
