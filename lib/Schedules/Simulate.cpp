#include "lib/Schedules/Simulate.h"

#include "lib/Schedules/Live.h"
#include "lib/Schedules/Waits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace meshwork::schedules {
namespace {

absl::Status checkCosts(const Costs &costs, size_t stages) {
  for (const std::vector<double> *times :
       {&costs.forward, &costs.inputGrad, &costs.weightGrad, &costs.transfer,
        &costs.backward}) {
    bool isLeftOut = times == &costs.backward && times->empty();
    if (times->size() != stages && !isLeftOut)
      return absl::InvalidArgumentError(
          absl::StrCat("the costs have ", times->size(),
                       " times of a kind, expected one for each of the ",
                       stages, " virtual stages"));
    for (double time : *times)
      if (!(time >= 0) || !std::isfinite(time))
        return absl::InvalidArgumentError(absl::StrCat(
            "the costs hold ", time, ", expected a finite time, 0 or more"));
  }
  return absl::OkStatus();
}

void addUp(const Table &table, const Costs &costs, Timeline &timeline) {
  timeline.stages.resize(table.rankOf.size());
  LiveCount live(table.rankOf.size());
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    Timeline::Work &work = timeline.ranks.emplace_back();
    work.liveMicrobatches = live.ofRank(table.ranks[rank]);
    for (const Action &action : table.ranks[rank]) {
      double time =
          workTime(costs, action.kind, static_cast<size_t>(action.stage));
      work.busy += time;
      timeline.stages[static_cast<size_t>(action.stage)].busy += time;
    }
  }
  for (size_t stage = 0; stage < table.rankOf.size(); ++stage)
    timeline.stages[stage].liveMicrobatches = live.ofStages()[stage];
}

void addSpans(const Table &table, const Index &index, const Waits &waits,
              const std::vector<double> &times, Timeline &timeline) {
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    auto &spans = timeline.spans.emplace_back();
    spans.reserve(table.ranks[rank].size());
    for (size_t i = 0; i < table.ranks[rank].size(); ++i) {
      uint32_t action = index.number(rank, i);
      Timeline::Span span{times[waits.started(action)],
                          times[waits.ended(action)]};
      const Action &what = table.ranks[rank][i];
      if (isTransfer(what.kind)) {
        Edge edge = edgeOf(what);
        uint32_t peer =
            index.find(edge.peerKind, edge.peerStage, what.microbatch);
        span.begin = std::max(span.begin, times[waits.started(peer)]);
      }
      timeline.makespan = std::max(timeline.makespan, span.end);
      spans.push_back(span);
    }
  }
}

/// How long a rank is at work, from its first to its last computing action.
double spanOf(const std::vector<Action> &actions,
              const std::vector<Timeline::Span> &spans) {
  double begin = 0, end = 0;
  bool any = false;
  for (size_t i = 0; i < actions.size(); ++i)
    if (isCompute(actions[i].kind)) {
      begin = any ? std::min(begin, spans[i].begin) : spans[i].begin;
      end = std::max(end, spans[i].end);
      any = true;
    }
  return end - begin;
}

double bubbleOf(const Table &table, const Timeline &timeline) {
  double longest = 0, bubble = 0;
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    double span = spanOf(table.ranks[rank], timeline.spans[rank]);
    if (!std::isfinite(span))
      return span;
    if (span > longest) {
      longest = span;
      bubble = 1 - timeline.ranks[rank].busy / span;
    }
  }
  return bubble;
}

double idleOf(const Timeline &timeline) {
  double busy = 0;
  for (const Timeline::Work &rank : timeline.ranks)
    busy += rank.busy / static_cast<double>(timeline.ranks.size());
  return timeline.makespan > 0 ? 1 - busy / timeline.makespan : 0;
}

} // namespace

absl::StatusOr<Timeline> simulate(const Table &table, const Costs &costs) {
  Faults faults(table);
  checkRanges(table, faults);
  if (!faults.none())
    return faults.status();
  if (absl::Status status = checkCosts(costs, table.rankOf.size());
      !status.ok())
    return status;
  Index index(table);
  Waits waits(table, index, {});
  std::vector<double> times = waits.times(costs);
  if (std::find(times.begin(), times.end(), Waits::never) != times.end())
    return absl::InvalidArgumentError(
        "the table cannot run to its end: ranks wait for one another, or for "
        "what is missing");
  Timeline timeline;
  addUp(table, costs, timeline);
  addSpans(table, index, waits, times, timeline);
  timeline.bubbleFraction = bubbleOf(table, timeline);
  timeline.idleFraction = idleOf(timeline);
  if (!std::isfinite(timeline.makespan) ||
      !std::isfinite(timeline.bubbleFraction))
    return absl::InvalidArgumentError("the costs add up to no finite time");
  return timeline;
}

struct Makespan::Graph {
  const Table &table;
  Index index{table};
  Waits waits{table, index, {}};
};

Makespan::Makespan(const Table &table) : graph(new Graph{table}) {}
Makespan::~Makespan() = default;

double Makespan::of(const Costs &costs) const {
  std::vector<double> times = graph->waits.times(costs);
  return times.empty() ? 0 : *std::max_element(times.begin(), times.end());
}

double Makespan::busiest(const Costs &costs) const {
  double most = 0;
  for (const std::vector<Action> &rank : graph->table.ranks) {
    double busy = 0;
    for (const Action &action : rank)
      busy += workTime(costs, action.kind, static_cast<size_t>(action.stage));
    most = std::max(most, busy);
  }
  return most;
}

} // namespace meshwork::schedules
