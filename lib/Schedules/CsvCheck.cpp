// Whether the cells of a table fit together.
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/CsvParts.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"

#include <algorithm>

namespace meshwork::schedules {

void CsvErrors::add(size_t rank, size_t cell, const std::string &message) {
  addLine(absl::StrCat(":", rank + 1, ": cell ", cell + 1, " (rank ", rank,
                       "): ", message));
}

void CsvErrors::add(const std::string &message) {
  addLine(absl::StrCat(": ", message));
}

void CsvErrors::addLine(const std::string &line) {
  if (++count <= most)
    absl::StrAppend(&lines, lines.empty() ? "" : "\n", onOneLine(name), line);
}

absl::Status CsvErrors::status() const {
  return absl::InvalidArgumentError(
      count > most ? absl::StrCat(lines, "\n", onOneLine(name), ": ",
                                  count - most, " more errors")
                   : lines);
}

namespace {

class Completion {
public:
  Completion(CsvTable &read, CsvErrors &errors)
      : read(read), table(read.table), errors(errors) {}

  void run() {
    findStages();
    for (size_t rank = 0; rank < table.ranks.size(); ++rank)
      for (size_t at = 0; at < table.ranks[rank].size(); ++at)
        check(rank, at);
    for (size_t stage = 0; stage < table.rankOf.size(); ++stage)
      if (table.rankOf[stage] < 0)
        errors.add(absl::StrCat("no rank has an F, B, I or W of stage ", stage,
                                ", though there is a stage ",
                                table.rankOf.size() - 1));
  }

private:
  CsvTable &read;
  Table &table;
  CsvErrors &errors;
  size_t forwards = 0;

  /// A stage's rank is the first that computes it.
  void findStages() {
    for (size_t rank = 0; rank < table.ranks.size(); ++rank)
      for (const Action &action : table.ranks[rank]) {
        if (!isCompute(action.kind))
          continue;
        auto stage = static_cast<size_t>(action.stage);
        if (table.rankOf.size() <= stage)
          table.rankOf.resize(stage + 1, -1);
        if (table.rankOf[stage] < 0)
          table.rankOf[stage] = static_cast<int32_t>(rank);
        forwards += action.kind == Kind::forward;
        table.microbatches =
            std::max(table.microbatches, action.microbatch + 1);
      }
  }

  /// Every stage does every microbatch's F, so a file cannot ask for more
  /// memory than its own size allows.
  bool tooMany(const Action &action) const {
    return isCompute(action.kind) &&
           (static_cast<size_t>(action.microbatch) >= forwards ||
            static_cast<size_t>(action.stage) >= forwards ||
            static_cast<size_t>(action.microbatch + 1) * table.rankOf.size() >
                forwards);
  }

  void check(size_t rank, size_t at) {
    const Action &action = table.ranks[rank][at];
    std::string wrong = wrongOf(action, static_cast<int32_t>(rank));
    if (!wrong.empty())
      errors.add(rank, read.cells[rank][at],
                 absl::StrCat("found ", text(action), ", ", wrong));
  }

  std::string wrongOf(const Action &action, int32_t rank) const {
    auto stages = static_cast<int32_t>(table.rankOf.size());
    if (action.stage >= stages)
      return absl::StrCat("expected a stage that a rank computes: ",
                          counted(stages, "stage"), " have an F, B, I or W");
    if (action.microbatch >= table.microbatches)
      return absl::StrCat("expected a microbatch below ", table.microbatches,
                          ", no stage computes more");
    if (tooMany(action))
      return absl::StrCat("microbatch ", action.microbatch, " of ",
                          counted(stages, "stage"), ", but the file has ",
                          forwards,
                          " F in all, expected one for each microbatch of each "
                          "stage");
    if (int32_t holder = table.rankOf[static_cast<size_t>(action.stage)];
        isCompute(action.kind) && holder != rank)
      return absl::StrCat("expected an action of another stage, rank ", holder,
                          " computes stage ", action.stage, " already");
    return "";
  }
};

} // namespace

void complete(CsvTable &read, CsvErrors &errors) {
  Completion(read, errors).run();
}

} // namespace meshwork::schedules
