#include "tools/meshwork/driver/ScheduleReport.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Grid.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace meshwork::driver {
namespace {

using Json = nlohmann::ordered_json;
using schedules::Table;

/// Of ranks in a text that people read.
constexpr size_t mostRows = 64;

/// As in the CSV, without what starts together.
Json actionsOf(const Table &table) {
  Json actions = Json::array();
  for (const std::vector<schedules::Action> &rank : table.ranks) {
    Json list = Json::array();
    for (const schedules::Action &action : rank)
      list.push_back(schedules::text(action));
    actions.push_back(std::move(list));
  }
  return actions;
}

Json workOf(const std::vector<schedules::Timeline::Work> &all) {
  Json list = Json::array();
  for (const schedules::Timeline::Work &work : all)
    list.push_back(
        {{"busy", work.busy}, {"live_microbatches", work.liveMicrobatches}});
  return list;
}

Json jsonOfTable(const Table &table, bool legal) {
  return {{"legal", legal},
          {"ranks", table.ranks.size()},
          {"virtual_stages", table.rankOf.size()},
          {"microbatches", table.microbatches},
          {"rank_of_virtual_stage", table.rankOf}};
}

std::string rows(const schedules::Timeline &timeline) {
  std::string text = "rank  busy          live microbatches\n";
  size_t shown = std::min(timeline.ranks.size(), mostRows);
  for (size_t rank = 0; rank < shown; ++rank)
    absl::StrAppendFormat(&text, "%4d  %-12s  %d\n", rank,
                          absl::StrCat(timeline.ranks[rank].busy),
                          timeline.ranks[rank].liveMicrobatches);
  if (shown < timeline.ranks.size())
    absl::StrAppend(&text, "(", timeline.ranks.size() - shown,
                    " more ranks: --json lists all)\n");
  return text;
}

} // namespace

std::string titleOf(const ScheduleReport &report) {
  const Table &table = report.table;
  return absl::StrCat(report.name, ": ", counted(table.ranks.size(), "rank"),
                      ", ", counted(table.rankOf.size(), "virtual stage"), ", ",
                      counted(table.microbatches, "microbatch"));
}

std::string textOf(const ScheduleReport &report, size_t columns) {
  std::string text =
      absl::StrCat(onOneLine(titleOf(report)), "\n\n",
                   schedules::grid(report.table, report.timeline,
                                   {.columns = columns, .rows = mostRows}),
                   "\n");
  absl::StrAppendFormat(
      &text,
      "makespan  %.9g\nbubble    %.4f %% of the span of the rank "
      "whose span is the longest\nidle      %.4f %% of the "
      "makespan, over all ranks\n",
      report.timeline.makespan, report.timeline.bubbleFraction * 100,
      report.timeline.idleFraction * 100);
  absl::StrAppend(&text, "legal     yes: every rank comes to its end\n");
  if (report.runsInOrder)
    absl::StrAppend(&text, "in order  ",
                    *report.runsInOrder
                        ? "yes: also where a rank's transfers complete one "
                          "after another, as on a GPU's stream\n"
                        : "no: hangs where a rank's transfers complete one "
                          "after another, as on a GPU's stream\n");
  return absl::StrCat(text, "\n", rows(report.timeline));
}

std::string jsonOf(const ScheduleReport &report) {
  Json json = {{"schedule", report.name}};
  json.update(jsonOfTable(report.table, true));
  json["bubble_fraction"] = report.timeline.bubbleFraction;
  json["idle_fraction"] = report.timeline.idleFraction;
  json["makespan"] = report.timeline.makespan;
  json["stages"] = workOf(report.timeline.ranks);
  json["per_virtual_stage"] = workOf(report.timeline.stages);
  if (report.runsInOrder)
    json["legal_in_order"] = *report.runsInOrder;
  json["actions"] = actionsOf(report.table);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string jsonOf(const Table &table, const std::vector<std::string> &errors) {
  Json json = jsonOfTable(table, false);
  json["bubble_fraction"] = json["idle_fraction"] = json["makespan"] = nullptr;
  json["stages"] = Json::array();
  json["errors"] = errors;
  json["actions"] = actionsOf(table);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace meshwork::driver
