#include "lib/Schedules/ListScheduler.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace meshwork::schedules {
namespace {

/// A rank that has something to decide, at a time; the earliest first, and of
/// equal times the lower rank, so that equal work gives equal tables.
using Event = std::pair<double, int32_t>;

class ListScheduler {
public:
  ListScheduler(const Work &work, Rule &rule)
      : work(work), rule(rule), free(work.stagesOf.size()) {
    size_t stages = work.rankOf.size(), ranks = free.size();
    done = {std::vector<int32_t>(stages), std::vector<int32_t>(stages),
            std::vector<int32_t>(stages)};
    forwardEnd.resize(stages * microbatches());
    gradEnd.resize(stages * microbatches());
    result.begin.assign(ranks, forEver);
    result.end.resize(ranks);
    result.table = {work.microbatches, work.rankOf, {}};
    result.table.ranks.resize(ranks);
  }

  std::optional<Scheduled> run() {
    for (size_t rank = 0; rank < free.size(); ++rank)
      events.push({0, static_cast<int32_t>(rank)});
    while (!events.empty()) {
      auto [now, rank] = events.top();
      events.pop();
      if (now >= free[static_cast<size_t>(rank)])
        decide(rank, now);
    }
    if (std::ranges::any_of(done.weightGrad, [&](int32_t count) {
          return count < work.microbatches;
        }))
      return std::nullopt;
    finish();
    return std::move(result);
  }

private:
  const Work &work;
  Rule &rule;
  Progress done;
  /// When each F, and each I or B, of a stage and microbatch ends.
  std::vector<double> forwardEnd, gradEnd;
  std::vector<double> free;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<Wish> wishes;
  Scheduled result;

  size_t microbatches() const { return static_cast<size_t>(work.microbatches); }

  /// When the next action of that kind and stage can begin; never, as far as is
  /// known yet, where what it needs has not begun.
  double ready(const Wish &wish) const {
    auto stage = static_cast<size_t>(wish.stage);
    if (wish.kind == Kind::forward)
      return readyForward(stage);
    if (wish.kind != Kind::weightGrad)
      return readyGrad(stage);
    auto at = static_cast<size_t>(done.weightGrad[stage]);
    if (done.weightGrad[stage] >= done.inputGrad[stage])
      return forEver;
    return gradEnd[stage * microbatches() + at];
  }

  double readyForward(size_t stage) const {
    int32_t at = done.forward[stage];
    if (at >= work.microbatches)
      return forEver;
    if (stage == 0)
      return 0;
    if (at >= done.forward[stage - 1])
      return forEver;
    return forwardEnd[(stage - 1) * microbatches() + static_cast<size_t>(at)] +
           work.costs.transfer[stage - 1];
  }

  double readyGrad(size_t stage) const {
    int32_t at = done.inputGrad[stage];
    if (at >= done.forward[stage])
      return forEver;
    size_t here = stage * microbatches() + static_cast<size_t>(at);
    if (stage + 1 == work.rankOf.size())
      return forwardEnd[here];
    if (at >= done.inputGrad[stage + 1])
      return forEver;
    return std::max(forwardEnd[here], gradEnd[here + microbatches()] +
                                          work.costs.transfer[stage]);
  }

  /// Starts what the rank likes best of what can begin; else looks again when
  /// something can.
  void decide(int32_t rank, double now) {
    wishes.clear();
    rule.wishes(rank, done, wishes);
    double next = forEver;
    for (const Wish &wish : wishes) {
      double at = ready(wish);
      if (at <= now)
        return start(rank, wish, now);
      next = std::min(next, at);
      if (wish.patience == forEver || at - now <= wish.patience)
        break;
    }
    if (next < forEver)
      events.push({next, rank});
  }

  void start(int32_t rank, const Wish &wish, double now) {
    auto stage = static_cast<size_t>(wish.stage);
    auto at = static_cast<size_t>(rank);
    double end = now + workTime(work.costs, wish.kind, stage);
    result.table.ranks[at].push_back(
        {wish.kind, wish.stage, record(wish.kind, stage, end), wish.withNext});
    result.begin[at] = std::min(result.begin[at], now);
    result.end[at] = free[at] = end;
    events.push({end, rank});
  }

  /// Notes that an action ends then, and wakes the rank that waits for it.
  /// Returns its microbatch.
  int32_t record(Kind kind, size_t stage, double end) {
    if (kind == Kind::weightGrad)
      return done.weightGrad[stage]++;
    size_t row = stage * microbatches();
    if (kind == Kind::forward) {
      forwardEnd[row + static_cast<size_t>(done.forward[stage])] = end;
      if (stage + 1 < work.rankOf.size())
        events.push({end + work.costs.transfer[stage], work.rankOf[stage + 1]});
      return done.forward[stage]++;
    }
    gradEnd[row + static_cast<size_t>(done.inputGrad[stage])] = end;
    if (stage > 0)
      events.push(
          {end + work.costs.transfer[stage - 1], work.rankOf[stage - 1]});
    done.weightGrad[stage] += kind == Kind::backward;
    return done.inputGrad[stage]++;
  }

  void finish() {
    for (size_t rank = 0; rank < free.size(); ++rank) {
      result.makespan = std::max(result.makespan, result.end[rank]);
      result.span =
          std::max(result.span, result.end[rank] - result.begin[rank]);
    }
  }
};

} // namespace

std::optional<Scheduled> schedule(const Work &work, Rule &rule) {
  return ListScheduler(work, rule).run();
}

} // namespace meshwork::schedules
