#include "tools/meshwork/driver/Schedule.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Index.h"
#include "lib/Schedules/Lower.h"
#include "lib/Schedules/Svg.h"
#include "lib/Schedules/Verdict.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/ScheduleReport.h"
#include "tools/meshwork/driver/ScheduleTable.h"
#include <sys/ioctl.h>
#include <unistd.h>

namespace meshwork::driver {
namespace {

/// The width of the terminal; wider where there is none.
size_t columnsOfTerminal() {
  winsize size = {};
  bool isKnown = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return isKnown && size.ws_col > 0 ? size.ws_col : 160;
}

/// Nothing is written over what is read, and what cannot be written is told
/// before any work.
int checkFiles(const ScheduleOptions &options) {
  std::vector<runtime::FileUse> uses;
  if (!isScheduleName(options.source))
    uses.push_back({"the schedule", options.source});
  uses.push_back({"--costs", options.costs});
  uses.push_back({"--csv", options.csv, true});
  uses.push_back({"--svg", options.svg, true});
  if (int code = checkUses(uses); code != ok)
    return code;
  for (const std::string &path : {options.csv, options.svg})
    if (int code = path.empty() ? ok : checkOutput(path); code != ok)
      return code;
  return ok;
}

/// One run of `meshwork schedule`.
class Run {
public:
  explicit Run(const ScheduleOptions &options) : options(options) {}

  int run() {
    for (auto step : {&Run::prepare, &Run::judge, &Run::addTransfers,
                      &Run::simulate, &Run::writeFiles})
      if (int code = (this->*step)(); code != ok)
        return code;
    if (options.csv == "-" || options.svg == "-")
      return ok;
    ScheduleReport said = told();
    return writeOut(options.json ? jsonOf(said)
                                 : textOf(said, columnsOfTerminal()));
  }

private:
  int prepare() {
    if (int code = checkSchedule(options); code != ok)
      return code;
    if (int code = checkFiles(options); code != ok)
      return code;
    return makeTable(options, priced);
  }

  int judge() {
    absl::Status verdict = schedules::judge(
        priced.table, {.memory = priced.memory, .stash = options.stash});
    return verdict.ok() ? ok : refuse(verdict);
  }

  int refuse(const absl::Status &verdict) {
    std::vector<std::string> errors =
        absl::StrSplit(std::string(verdict.message()), '\n');
    if (options.json)
      if (int code = writeOut(jsonOf(priced.table, errors)); code != ok)
        return code;
    return report(absl::DataLossError(absl::StrCat(
        quote(options.source), " is not legal:\n", verdict.message())));
  }

  int addTransfers() {
    if (options.transfers) {
      absl::StatusOr<schedules::Table> lowered =
          schedules::lower(priced.table, priced.costs);
      if (!lowered.ok())
        return report(lowered.status());
      priced.table = *std::move(lowered);
      if (int code = judge(); code != ok)
        return code;
    }
    return judgeInOrder();
  }

  int judgeInOrder() {
    if (!schedules::Index(priced.table).hasTransfers())
      return options.inOrder
                 ? report(absl::InvalidArgumentError(absl::StrCat(
                       "--in-order is about transfers, and ",
                       quote(options.source), " has none; add --transfers")))
                 : ok;
    absl::Status verdict =
        schedules::judge(priced.table, {.transfersInOrder = true});
    runsInOrder = verdict.ok();
    return options.inOrder && !verdict.ok() ? refuse(verdict) : ok;
  }

  int simulate() {
    absl::StatusOr<schedules::Timeline> simulated =
        schedules::simulate(priced.table, priced.costs);
    if (!simulated.ok())
      return report(
          absl::DataLossError(std::string(simulated.status().message())));
    timeline = *std::move(simulated);
    return ok;
  }

  int writeFiles() {
    if (!options.csv.empty())
      if (int code = writeFile(options.csv, schedules::csv(priced.table));
          code != ok)
        return code;
    if (options.svg.empty())
      return ok;
    return writeFile(options.svg,
                     schedules::svg(priced.table, timeline, titleOf(told())));
  }

  ScheduleReport told() const {
    return {options.source, priced.table, timeline, runsInOrder};
  }

  const ScheduleOptions &options;
  PricedTable priced;
  schedules::Timeline timeline;
  std::optional<bool> runsInOrder;
};

} // namespace

int schedule(const ScheduleOptions &options) { return Run(options).run(); }

} // namespace meshwork::driver
