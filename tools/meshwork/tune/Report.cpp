#include "tools/meshwork/tune/Report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Explain/Estimate.h"
#include "lib/Explain/Format.h"
#include "meshwork/Text/Counted.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <set>

namespace meshwork::tune {
namespace {

using explain::bytesText, explain::countText, explain::timeText;
constexpr size_t mostRows = 10;

std::string partText(double part) {
  return absl::StrFormat("%.1f %%", 100 * part);
}

double exposedOf(const Costed &costed) {
  double sum = 0;
  for (const auto &[axes, seconds] : costed.exposed)
    sum += seconds;
  return sum;
}

/// Seconds of a step by what they go into.
struct Parts {
  explicit Parts(const Costed &costed) {
    double bubble = costed.seconds * costed.bubble.value_or(0);
    double exposed = std::min(exposedOf(costed), costed.seconds - bubble);
    of = {{"computing", costed.seconds - bubble - exposed},
          {"moving", exposed},
          {"bubble", bubble}};
  }
  std::vector<std::pair<const char *, double>> of;
};

/// "+3.1 %: moving +80 ms, computing -2.00 ms"
std::string lossText(const Costed &costed, const Costed &best) {
  std::string text =
      absl::StrFormat("%+.1f %%", 100 * (costed.seconds / best.seconds - 1));
  std::vector<std::pair<double, std::string>> changes;
  Parts own(costed), least(best);
  for (size_t i = 0; i < own.of.size(); ++i) {
    double more = own.of[i].second - least.of[i].second;
    if (std::abs(more) >= 0.001 * best.seconds)
      changes.emplace_back(-more, absl::StrCat(own.of[i].first, " ",
                                               more > 0 ? "+" : "-",
                                               timeText(std::abs(more))));
  }
  std::sort(changes.begin(), changes.end());
  for (size_t i = 0; i < changes.size(); ++i)
    absl::StrAppend(&text, i == 0 ? ": " : ", ", changes[i].second);
  return text;
}

std::string measuredText(const Row &row) {
  return row.measured.value_or(0) > 0 ? timeText(*row.measured) : "-";
}

/// Why specs did not run here, each reason once.
std::string unmeasuredText(const Found &found) {
  std::set<std::string> reasons;
  for (const Row &row : found.rows)
    if (!row.whyUnmeasured.empty())
      reasons.insert(row.whyUnmeasured);
  std::string text;
  for (const std::string &why : reasons)
    absl::StrAppend(&text, "Not measured: ", why, "\n");
  return text;
}

std::vector<std::string> cellsOf(const Row &row, uint32_t ranks) {
  const Costed &costed = row.costed;
  return {timeText(costed.seconds),
          countText(costed.tokensPerSecond / ranks),
          costed.mfu > 0 ? partText(costed.mfu) : "-",
          bytesText(costed.bytes),
          timeText(exposedOf(costed)),
          costed.bubble ? partText(*costed.bubble) : "-"};
}

size_t rowsWithin(const Found &found, double within) {
  double most = found.rows.front().costed.seconds * (1 + within);
  size_t count = 0;
  for (const Row &row : found.rows)
    count += row.costed.seconds <= most;
  return std::max(count, std::min(found.rows.size(), mostRows));
}

std::string bestText(const Found &found, const Asked &asked) {
  bool isMeasured = found.rows.front().measured.has_value();
  std::vector<std::string> head = {
      ">step",       ">tokens/s a rank", ">MFU", ">memory",
      ">not hidden", ">bubble",          "spec", "lost"};
  if (isMeasured)
    head.insert(head.begin(), ">measured");
  explain::Table table(head);
  size_t count = rowsWithin(found, asked.within);
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::string> cells = cellsOf(found.rows[i], asked.ranks);
    cells.push_back(nameOf(found.rows[i].choice));
    cells.push_back(
        i == 0 ? "" : lossText(found.rows[i].costed, found.rows[0].costed));
    if (isMeasured)
      cells.insert(cells.begin(), measuredText(found.rows[i]));
    table.add(cells);
  }
  return table.render() + unmeasuredText(found);
}

bool isTooLarge(const Found &found, const Row &row) {
  return found.limit > 0 && row.costed.bytes > found.limit;
}

std::string usualText(const Found &found) {
  std::string text = "What is usual:\n";
  explain::Table table({"", ">step", ">memory", "spec", ""});
  for (const UsualRow &usual : found.usual) {
    if (!usual.row) {
      table.add({usual.name, "-", "-", "none", usual.why});
      continue;
    }
    const Costed &costed = usual.row->costed;
    std::string why;
    if (isTooLarge(found, *usual.row))
      why = "does not fit: " + bytesText(costed.bytes - found.limit) +
            " too much";
    else if (!found.rows.empty())
      why = lossText(costed, found.rows[0].costed);
    table.add({usual.name, timeText(costed.seconds), bytesText(costed.bytes),
               nameOf(usual.row->choice), why});
  }
  return text + table.render();
}

std::string refusedText(const Found &found) {
  size_t sum = 0;
  std::pair<size_t, std::string> most;
  for (const auto &[why, count] : found.refused) {
    sum += count;
    most = std::max(most, {count, why});
  }
  if (sum == 0)
    return "";
  return absl::StrCat(", ", sum, " refused (most: ", most.second, ")");
}

/// Of what was compiled; where some was measured, that of another may be first.
double leastSeconds(const Found &found) {
  double least = found.rows.front().costed.seconds;
  for (const Row &row : found.rows)
    least = std::min(least, row.costed.seconds);
  return least;
}

std::string countsText(const Found &found) {
  std::string text = absl::StrCat(
      counted(found.choices, "spec"), ": ", found.compiled, " compiled, ",
      found.tooSlow, " slower by their bound, ", found.tooLarge,
      " too large by theirs", refusedText(found), "\n");
  if (found.cached > 0)
    absl::StrAppend(&text, counted(found.cached, "result"),
                    " of an earlier search, from --cache.\n");
  if (found.isInterrupted)
    absl::StrAppend(&text, "Interrupted: this is the best so far.\n");
  if (!found.rows.empty() && found.bound > 0) {
    double best = leastSeconds(found);
    absl::StrAppend(&text, "No spec of these takes less than ",
                    timeText(found.bound), " by its bound",
                    found.bound < best
                        ? absl::StrFormat(", %.1f %% below the best",
                                          100 * (1 - found.bound / best))
                        : "",
                    ".\n");
  }
  for (const std::string &one : found.broken)
    absl::StrAppend(&text, "Fault of the compiler: ", one, "\n");
  return text;
}

std::string leftOutText() {
  std::string text = "Not tried:\n";
  for (const std::string &line : Space::leftOut())
    absl::StrAppend(&text, "  ", line, "\n");
  return text;
}
} // namespace

std::string textOf(const Found &found, const Asked &asked) {
  std::string text = absl::StrCat(counted(asked.ranks, "rank"), ":\n");
  if (!found.rows.empty())
    text += bestText(found, asked);
  return text + usualText(found) + countsText(found) + leftOutText();
}

std::string scalingText(const std::vector<std::pair<uint32_t, Found>> &all) {
  explain::Table table({">ranks", ">step", ">tokens/s", ">a rank",
                        ">efficiency", ">memory", "spec"});
  double first = 0;
  for (const auto &[ranks, found] : all) {
    if (found.rows.empty()) {
      table.add({absl::StrCat(ranks), "-", "-", "-", "-", "-", whyNone(found)});
      continue;
    }
    const Costed &costed = found.rows[0].costed;
    double ofRank = costed.tokensPerSecond / ranks;
    first = first > 0 ? first : ofRank;
    table.add({absl::StrCat(ranks), timeText(costed.seconds),
               countText(costed.tokensPerSecond), countText(ofRank),
               partText(ofRank / first), bytesText(costed.bytes),
               nameOf(found.rows[0].choice)});
  }
  return "The best of each number of ranks:\n" + table.render();
}

std::string whyNone(const Found &found) {
  if (found.nearest) {
    const Costed &costed = found.nearest->costed;
    return absl::StrCat(
        "no spec fits the ", bytesText(found.limit), " of ", found.limitFrom,
        "; nearest comes ", nameOf(found.nearest->choice), ", which needs ",
        bytesText(costed.bytes),
        " of a rank: ", bytesText(costed.bytes - found.limit), " too much");
  }
  if (!found.refused.empty()) {
    auto most = std::max_element(
        found.refused.begin(), found.refused.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    return absl::StrCat("no spec is legal; most are refused for this: ",
                        most->first);
  }
  return "no spec is within what --axis and --fixed leave";
}

} // namespace meshwork::tune
