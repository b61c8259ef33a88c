#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Cost/OfPlan.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Programs.h"
#include "lib/Schedules/ListKinds.h"
#include "lib/Simulate/Simulation.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace meshwork::simulate {
namespace {
using Spans = std::vector<cost::ListClock::Span>;

/// Lists that move data between stages have tracks of their own.
constexpr uint32_t firstTransferTrack = 1000;

std::string jsonString(const flatbuffers::String *text) {
  using nlohmann::json;
  return json(text ? text->str() : std::string())
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The events of one rank.
class RankTrace {
public:
  RankTrace(const plan::Plan &plan, const cost::Times &times, uint64_t rank)
      : rank(rank), times(times),
        program(*plan.programs()->Get(plan::programOf(plan, rank))),
        lists(plan::listsOf(program)), actions(plan::actionsOf(program)) {
    for (uint32_t list = 0; list < lists.size(); ++list) {
      spans.push_back(cost::spansOfList(times, program, list, false));
      last.push_back(cost::spansOfList(times, program, list, true));
    }
    for (uint32_t i = 0; i < actions.size(); ++i)
      lastOf[actions[i].list()] = i;
  }

  uint64_t numEvents() const {
    uint64_t events = 0;
    for (const plan::Action &action : actions)
      events += spans[action.list()].size();
    return events;
  }

  /// Of what stands before the pipeline's actions.
  double secondsBefore() const {
    double seconds = 0;
    for (uint32_t i = 0; i < actions.size() && !isOfStage(i); ++i)
      seconds += secondsOf(i);
    return seconds;
  }

  /// `begin`: when the pipeline's actions do, whose timeline is `stages`;
  /// without one actions run one after the other.
  void write(std::string &json, double begin,
             const schedules::Timeline *timeline, size_t row) const {
    double now = timeline ? begin - secondsBefore() : 0;
    size_t stageAction = 0;
    for (uint32_t i = 0; i < actions.size(); ++i) {
      if (timeline && isOfStage(i)) {
        const auto &span = timeline->spans[row][stageAction++];
        append(json, i, begin + span.begin);
        now = begin + timeline->makespan;
      } else {
        append(json, i, now);
        now += secondsOf(i);
      }
    }
  }

private:
  bool isOfStage(uint32_t action) const {
    return schedules::kindOf(lists[actions[action].list()].kind).has_value();
  }
  double secondsOf(uint32_t action) const {
    uint32_t list = actions[action].list();
    return cost::secondsOfList(times, program, list, lastOf.at(list) == action);
  }
  uint32_t trackOf(uint32_t list, const plan::Instruction &one) const {
    if (plan::sends(lists[list].kind) || plan::receives(lists[list].kind))
      return firstTransferTrack + list;
    return one.op_as_Collective() || one.channel() > 0 ? 1 + one.channel() : 0;
  }

  void append(std::string &json, uint32_t action, double begin) const {
    uint32_t list = actions[action].list();
    const Spans &all = (lastOf.at(list) == action ? last : spans)[list];
    for (uint32_t i = 0; i < all.size(); ++i)
      if (all[i].end > all[i].begin)
        appendEvent(json, actions[action], i, begin, all[i]);
  }

  void appendEvent(std::string &json, const plan::Action &action, uint32_t i,
                   double begin, const cost::ListClock::Span &span) const {
    const plan::Instruction &one = *plan::listOf(program, action.list()).Get(i);
    absl::StrAppendFormat(
        &json,
        "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
        "\"name\":%s,\"cat\":\"%s\",\"args\":{\"step\":1,\"microbatch\":%d,"
        "\"action\":\"%s\",\"instruction\":%d}},\n",
        rank, trackOf(action.list(), one), (begin + span.begin) * 1e6,
        (span.end - span.begin) * 1e6, jsonString(one.name()),
        plan::EnumNameOperation(one.op_type()), action.microbatch(),
        plan::textOf(lists[action.list()], action.microbatch()), i);
  }

  uint64_t rank;
  const cost::Times &times;
  const plan::Program &program;
  std::vector<plan::ListShape> lists;
  std::span<const plan::Action> actions;
  std::vector<Spans> spans, last; // by list
  std::map<uint32_t, uint32_t> lastOf;
};
} // namespace

absl::StatusOr<std::string> trace(const plan::Plan &plan,
                                  const Simulation &simulation) {
  cost::Times times =
      explain::timesOn(plan, simulation.whole.machine, cost::Ranks::threads);
  std::vector<RankTrace> ranks;
  uint64_t events = 0;
  double begin = 0;
  for (uint64_t rank : explain::firstRanks(plan)) {
    ranks.emplace_back(plan, times, rank);
    events += ranks.back().numEvents();
    begin = std::max(begin, ranks.back().secondsBefore());
  }
  if (events > maxTraceEvents)
    return absl::InvalidArgumentError(absl::StrCat(
        "--trace: a step has ", events, " events, expected at most ",
        maxTraceEvents, "; leave --trace out, or compile a smaller batch"));
  const auto &timeline = simulation.whole.estimate.step.timeline;
  std::string json =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":",
                   jsonString(plan.source_hash()), "},\"traceEvents\":[\n");
  for (size_t row = 0; row < ranks.size(); ++row)
    ranks[row].write(json, begin, timeline ? &*timeline : nullptr, row);
  // The format allows no comma after the last event; this one is a name.
  return json + "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0,"
                "\"args\":{}}\n]}\n";
}

} // namespace meshwork::simulate
