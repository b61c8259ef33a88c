// When the actions of a step run, planned and measured: rows of spans.
#include "lib/Explain/Estimate.h"
#include "lib/Explain/StepTime.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Views.h"
#include "lib/Report/Parts.h"
#include "lib/Schedules/ListKinds.h"
#include "lib/Spec/Diagnostic.h"
#include <algorithm>
#include <cmath>
#include <optional>

namespace meshwork::report {
namespace {
using explain::RankWork;

/// Of all rows together; a picture of more shows nothing.
constexpr size_t mostSpans = 40'000;

/// A tenth of a microsecond is less than any picture shows.
double microseconds(double seconds) { return std::round(seconds * 1e7) / 10; }

/// "F" of a forward pass, "update" of what is of no stage.
std::string wordOf(const plan::ListShape &list) {
  auto kind = schedules::kindOf(list.kind);
  return kind ? std::string(schedules::letters(*kind))
              : plan::EnumNameListKind(list.kind);
}

/// An action's time in seconds.
struct Span {
  double begin, end;
  std::optional<double> wait = {}; // of it, for peers; of a run
};

/// [word, virtual stage, microbatch, begin, end, wait] in microseconds.
Json spanJson(const plan::ListShape &list, uint32_t microbatch, Span span) {
  Json json = Json::array({wordOf(list), list.stage, microbatch,
                           microseconds(span.begin), microseconds(span.end)});
  if (span.wait)
    json.push_back(microseconds(*span.wait));
  return json;
}

/// Rows that share what may be drawn.
class Rows {
public:
  explicit Rows(size_t rows)
      : perRow(std::max<size_t>(mostSpans / std::max<size_t>(rows, 1), 1)) {}
  void begin(uint64_t rank) {
    if (list.size() < mostPrograms)
      list.push_back(
          {{"rank", rank}, {"left_out", 0}, {"spans", Json::array()}});
    else
      ++rowsLeftOut;
    isShown = rowsLeftOut == 0;
  }
  void add(const plan::ListShape &shape, uint32_t microbatch, Span span) {
    end = std::max(end, span.end);
    if (!isShown)
      return;
    Json &row = list.back();
    if (row["spans"].size() < perRow)
      row["spans"].push_back(spanJson(shape, microbatch, span));
    else
      row["left_out"] = row["left_out"].get<uint64_t>() + 1;
  }
  Json take() {
    return {{"end_us", microseconds(end)},
            {"rows_left_out", rowsLeftOut},
            {"rows", std::move(list)}};
  }

private:
  size_t perRow;
  Json list = Json::array();
  uint64_t rowsLeftOut = 0;
  bool isShown = true;
  double end = 0;
};

/// What is of no stage before the pipeline's actions; all ranks wait for it.
double secondsBefore(const std::vector<RankWork> &ranks) {
  double longest = 0;
  for (const RankWork &work : ranks) {
    double sum = 0;
    for (const plan::Action &action : work.actions) {
      if (plan::isOfMicrobatch(work.lists[action.list()].kind))
        break;
      sum += work.seconds[action.list()];
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

/// One action after the other.
void addInOrder(Rows &rows, const RankWork &work) {
  double now = 0;
  for (const plan::Action &action : work.actions) {
    double seconds = work.seconds[action.list()];
    rows.add(work.lists[action.list()], action.microbatch(),
             {now, now + seconds});
    now += seconds;
  }
}

/// Those of stages as simulated, with what is before and after them.
void addSimulated(Rows &rows, const RankWork &work, double before,
                  const schedules::Timeline &timeline, size_t rank) {
  double now = 0, after = before + timeline.makespan;
  size_t place = 0;
  for (const plan::Action &action : work.actions) {
    const plan::ListShape &list = work.lists[action.list()];
    if (auto kind = schedules::kindOf(list.kind)) {
      const auto &span = timeline.spans[rank][place++];
      if (schedules::isCompute(*kind))
        rows.add(list, action.microbatch(),
                 {before + span.begin, before + span.end});
      continue;
    }
    double &at = place == 0 ? now : after,
           seconds = work.seconds[action.list()];
    rows.add(list, action.microbatch(), {at, at + seconds});
    at += seconds;
  }
}

std::vector<RankWork> workOf(const plan::Plan &plan,
                             const explain::StepEstimate &estimate) {
  explain::ListSeconds seconds;
  for (size_t i = 0; i < estimate.programs.size(); ++i) {
    auto lists = plan::listsOf(*plan.programs()->Get(static_cast<uint32_t>(i)));
    seconds.emplace_back(lists.size(), 0);
    for (const auto &list : estimate.programs[i].lists)
      seconds[i][list.list] = list.seconds / static_cast<double>(list.runs);
  }
  return explain::workOfPlan(plan, seconds);
}

Json plannedJson(const plan::Plan &plan) {
  cost::MachineResult machine = explain::machineOf(plan);
  if (!machine.machine)
    return {{"error", textOf(machine.diagnostics)}};
  explain::StepEstimate estimate =
      explain::estimateStep(plan, *machine.machine, cost::Ranks::threads);
  std::vector<RankWork> ranks = workOf(plan, estimate);
  std::vector<uint64_t> first = explain::firstRanks(plan);
  if (ranks.size() > 1 && !estimate.step.timeline)
    return {{"error", "the step has too many actions to simulate"}};
  Rows rows(ranks.size());
  double before = secondsBefore(ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    rows.begin(first[i]);
    if (estimate.step.timeline)
      addSimulated(rows, ranks[i], before, *estimate.step.timeline, i);
    else
      addInOrder(rows, ranks[i]);
  }
  return rows.take();
}

Json measuredJson(const plan::Plan &plan, const explain::Measured &measured) {
  Rows rows(measured.rows.size());
  for (const explain::Measured::Row &row : measured.rows) {
    auto lists =
        plan::listsOf(*plan.programs()->Get(plan::programOf(plan, row.rank)));
    rows.begin(row.rank);
    for (const explain::Measured::Action &one : row.actions)
      rows.add(lists[one.list], one.microbatch, {one.begin, one.end, one.wait});
  }
  Json object = rows.take();
  object["step"] = measured.typicalStep;
  return object;
}
} // namespace

Json scheduleJson(const plan::Plan &plan, const explain::Measured *measured) {
  return {{"planned", plannedJson(plan)},
          {"measured", measured ? measuredJson(plan, *measured) : Json()}};
}

} // namespace meshwork::report
