#include "lib/Explain/RankStep.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Programs.h"
#include <algorithm>
#include <map>
#include <span>

namespace meshwork::explain {
namespace {
using Events = std::span<const TraceEvent>;

/// Where a rank computes: spans that do not overlap.
class Busy {
public:
  void add(double begin, double end) { spans.push_back({begin, end, 0}); }
  void finish() {
    std::sort(spans.begin(), spans.end(),
              [](const Span &a, const Span &b) { return a.begin < b.begin; });
    double last = 0, before = 0;
    for (Span &span : spans) { // A trace from outside may have overlaps.
      span.begin = std::max(span.begin, last);
      span.end = std::max(span.end, span.begin);
      last = span.end;
      span.before = before;
      before += span.end - span.begin;
    }
  }
  /// How much of [begin, end) is busy.
  double within(double begin, double end) const {
    return until(end) - until(begin);
  }

private:
  struct Span {
    double begin, end, before;
  };
  double until(double time) const {
    auto next = std::upper_bound(
        spans.begin(), spans.end(), time,
        [](double at, const Span &span) { return at < span.begin; });
    if (next == spans.begin())
      return 0;
    const Span &span = *std::prev(next);
    return span.before + std::min(time, span.end) - span.begin;
  }
  std::vector<Span> spans;
};

/// One rank in one step.
class Reader {
public:
  Reader(const plan::Program &program, const TraceEvent &first)
      : program(program) {
    result.rank = first.rank;
    result.step = first.step;
    result.begin = first.begin;
  }

  RankStep read(Events events) {
    for (const TraceEvent &event : events)
      add(event, opOf(event));
    busy.finish();
    for (const TraceEvent &event : events)
      if (moves(opOf(event)))
        result.moves.push_back({event.list, event.instruction,
                                event.end - event.begin, event.wait,
                                busy.within(event.begin, event.end)});
    return std::move(result);
  }

private:
  const plan::Instruction &opOf(const TraceEvent &event) const {
    return *plan::listOf(program, event.list).Get(event.instruction);
  }
  static bool isTransfer(const plan::Instruction &op) {
    return op.op_as_Send() || op.op_as_Receive();
  }
  static bool moves(const plan::Instruction &op) {
    return op.op_as_Collective() || isTransfer(op);
  }

  void add(const TraceEvent &event, const plan::Instruction &op) {
    result.begin = std::min(result.begin, event.begin);
    result.end = std::max(result.end, event.end);
    if (op.channel() == 0)
      addToAction(event);
    if (!moves(op) && !op.op_as_Wait() && op.channel() == 0)
      busy.add(event.begin, event.end);
  }

  void addToAction(const TraceEvent &event) {
    auto [known, isNew] = actions.try_emplace({event.list, event.microbatch},
                                              result.actions.size());
    if (isNew)
      result.actions.push_back(
          {event.list, event.microbatch, event.begin, event.end, 0});
    RankStep::Action &action = result.actions[known->second];
    action.begin = std::min(action.begin, event.begin);
    action.end = std::max(action.end, event.end);
    action.wait += event.wait;
  }

  const plan::Program &program;
  RankStep result;
  Busy busy;
  std::map<std::pair<uint32_t, uint32_t>, size_t> actions;
};
} // namespace

std::vector<RankStep> rankSteps(const plan::Plan &plan,
                                std::vector<TraceEvent> events) {
  auto key = [](const TraceEvent &event) {
    return std::pair(event.rank, event.step);
  };
  std::sort(events.begin(), events.end(),
            [&](const TraceEvent &a, const TraceEvent &b) {
              return key(a) < key(b);
            });
  std::vector<RankStep> steps;
  for (size_t begin = 0, end; begin < events.size(); begin = end) {
    end = begin;
    while (end < events.size() && key(events[end]) == key(events[begin]))
      ++end;
    uint32_t program = plan::programOf(plan, events[begin].rank);
    Reader reader(*plan.programs()->Get(program), events[begin]);
    steps.push_back(reader.read({events.data() + begin, end - begin}));
  }
  return steps;
}

} // namespace meshwork::explain
