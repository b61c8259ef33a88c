#include "tools/meshwork/driver/ScheduleTable.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Schedules/CostFile.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Named.h"
#include "lib/Schedules/VirtualStages.h"
#include "lib/Spec/ScheduleNames.h"
#include "meshwork/Text/Counted.h"
#include "tools/meshwork/driver/Files.h"
#include <algorithm>
#include <filesystem>

namespace meshwork::driver {
namespace {

using schedules::Table;

// Pieces of work, stages x microbatches: about half a gigabyte.
constexpr int64_t mostPieces = int64_t{1} << 20;
// Of a file: F, I, W and four transfers of each piece.
constexpr int64_t mostActions = 7 * mostPieces;

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto &word : spec::words<spec::Schedule>())
    names.emplace_back(word.text);
  return names;
}

int wrongUsage(const std::string &message) {
  return report(absl::InvalidArgumentError(message));
}

int wrongData(const std::string &message) {
  return report(absl::DataLossError(message));
}

bool looksLikeFile(const std::string &source) {
  std::error_code none;
  return source == "-" || source.find_first_of("./") != source.npos ||
         std::filesystem::exists(source, none);
}

/// What the options say of a file must be so.
int checkSizes(const ScheduleOptions &options, const Table &table) {
  struct {
    const char *option;
    int64_t wanted, found;
  } sizes[] = {{"--stages", options.stages, std::ssize(table.ranks)},
               {"--microbatches", options.microbatches, table.microbatches},
               {"--virtual",
                int64_t{options.virtualStages} * std::ssize(table.ranks),
                std::ssize(table.rankOf)}};
  for (const auto &size : sizes)
    if (size.wanted != 0 && size.wanted != size.found)
      return wrongData(absl::StrCat(
          quote(options.source), ": has ", counted(table.ranks.size(), "rank"),
          ", ", counted(table.rankOf.size(), "virtual stage"), " and ",
          counted(table.microbatches, "microbatch"), ", which ", size.option,
          " contradicts"));
  int64_t actions = 0;
  for (const std::vector<schedules::Action> &rank : table.ranks)
    actions += std::ssize(rank);
  return actions <= mostActions
             ? ok
             : wrongData(absl::StrCat(quote(options.source), ": has ",
                                      counted(actions, "action"),
                                      ", expected at most ", mostActions));
}

} // namespace

int readCosts(const std::string &path, size_t stages, schedules::Costs &costs) {
  costs = schedules::unitCosts(stages);
  if (path.empty())
    return ok;
  int code = ok;
  std::optional<std::string> text = readFile(path, code);
  if (!text)
    return code;
  schedules::CostsResult result = schedules::readCosts(*text, path, stages);
  std::string said = meshwork::textOf(result.diagnostics);
  std::fwrite(said.data(), 1, said.size(), stderr);
  if (!result.costs)
    return badData;
  costs = *std::move(result.costs);
  return ok;
}

namespace {

int generate(const schedules::Wanted &wanted, PricedTable &priced) {
  absl::StatusOr<Table> made = schedules::generate(wanted);
  if (!made.ok())
    return report(made.status());
  priced.table = *std::move(made);
  return ok;
}

/// The number of virtual stages too.
int choose(const schedules::Wanted &wanted, PricedTable &priced) {
  absl::StatusOr<schedules::Chosen> made =
      schedules::chooseVirtualStages(wanted);
  if (!made.ok())
    return report(made.status());
  priced = {std::move(made->table), std::move(made->costs), made->memory};
  return ok;
}

int generate(const ScheduleOptions &options, PricedTable &priced) {
  int32_t perRank = options.virtualStages > 0
                        ? options.virtualStages
                        : schedules::ownVirtualStages(options.source);
  size_t stages =
      static_cast<size_t>(perRank) * static_cast<size_t>(options.stages);
  if (int code = readCosts(options.costs, stages, priced.costs); code != ok)
    return code;
  schedules::Wanted wanted = {.name = options.source,
                              .ranks = options.stages,
                              .microbatches = options.microbatches,
                              .virtualStages = options.virtualStages,
                              .costs = priced.costs,
                              .memory = options.memory,
                              .stash = options.stash};
  bool chooses = options.virtualStages == 0 &&
                 options.source == wordOf(spec::Schedule::best);
  return chooses ? choose(wanted, priced) : generate(wanted, priced);
}

int read(const ScheduleOptions &options, PricedTable &priced) {
  int code = ok;
  std::optional<std::string> text = readFile(options.source, code);
  if (!text)
    return code;
  std::string note;
  absl::StatusOr<Table> parsed =
      schedules::parseCsv(*text, options.source, &note);
  if (!parsed.ok())
    return wrongData(std::string(parsed.status().message()));
  if (!note.empty())
    warn(absl::StrCat(quote(options.source), ": ", note));
  priced.table = *std::move(parsed);
  code = checkSizes(options, priced.table);
  return code == ok ? readCosts(options.costs, priced.table.rankOf.size(),
                                priced.costs)
                    : code;
}

} // namespace

bool isScheduleName(const std::string &source) {
  return spec::readWord<spec::Schedule>(source).has_value();
}

int checkSchedule(const ScheduleOptions &options) {
  if ((options.csv == "-") + (options.svg == "-") + options.json > 1)
    return wrongUsage("--json, --csv - and --svg - all print to stdout, "
                      "expected one of them");
  if (!isScheduleName(options.source))
    return looksLikeFile(options.source)
               ? ok
               : wrongUsage(absl::StrCat("unknown schedule ",
                                         quote(options.source),
                                         ", expected a CSV file or one of: ",
                                         absl::StrJoin(names(), ", "),
                                         suggestion(options.source, names())));
  if (options.stages == 0 || options.microbatches == 0)
    return wrongUsage(
        absl::StrCat(options.source, " needs --stages and --microbatches"));
  int64_t stages = int64_t{std::max(options.virtualStages, 1)} * options.stages;
  return stages <= mostPieces / options.microbatches
             ? ok
             : wrongUsage(absl::StrCat(
                   "stages x virtual stages x microbatches is above ",
                   mostPieces, ", expected at most that"));
}

int makeTable(const ScheduleOptions &options, PricedTable &priced) {
  priced.memory = options.memory;
  return isScheduleName(options.source) ? generate(options, priced)
                                        : read(options, priced);
}

} // namespace meshwork::driver
