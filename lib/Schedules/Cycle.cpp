#include "lib/Schedules/Cycle.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace meshwork::schedules {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;
// Waits looked at before the best cycle so far is taken.
constexpr size_t mostSteps = 100'000'000;

bool isWait(Why why) { return why != Why::order; }

class Search {
public:
  Search(const Waits &waits, const std::vector<double> &times)
      : waits(waits), open(waits.size()), distance(waits.size(), nowhere),
        from(waits.size()), why(waits.size()) {
    for (uint32_t node = 0; node < waits.size(); ++node)
      open[node] = times[node] == Waits::never;
    dropEnds();
  }

  Cycle run() {
    for (uint32_t node = 0; node < waits.size() && best > 0; ++node)
      if (open[node] && steps < mostSteps)
        searchFrom(node);
    Cycle cycle;
    cycle.isShortest = steps < mostSteps;
    fold(cycle);
    return cycle;
  }

private:
  /// One wait of the way around, from the node that is waited for.
  struct Hop {
    uint32_t from = 0, to = 0;
    Why why = Why::order;
  };

  /// Closes what waits, but is waited for by nothing that does.
  void dropEnds() {
    std::vector<uint32_t> count(waits.size(), 0), ends;
    std::vector<std::vector<uint32_t>> before(waits.size());
    for (uint32_t node = 0; node < waits.size(); ++node) {
      if (!open[node])
        continue;
      for (const Waits::Wait *w = waits.begin(node); w != waits.end(node);
           ++w) {
        ++count[node]; // all that waits for it is open too
        before[w->to].push_back(node);
      }
      if (count[node] == 0)
        ends.push_back(node);
    }
    while (!ends.empty()) {
      uint32_t node = ends.back();
      ends.pop_back();
      open[node] = false;
      for (uint32_t one : before[node])
        if (--count[one] == 0)
          ends.push_back(one);
    }
  }

  /// The fewest waits from `root` back to it, as far as that is a new best.
  void searchFrom(uint32_t root) {
    std::vector<uint32_t> seen;
    std::deque<uint32_t> queue = {root};
    bool isBack = false;
    distance[root] = 0;
    seen.push_back(root);
    while (!queue.empty() && !isBack) {
      uint32_t node = queue.front();
      queue.pop_front();
      isBack = goOn(node, root, queue, seen);
    }
    for (uint32_t node : seen)
      distance[node] = nowhere;
  }

  /// True when the root is found again.
  bool goOn(uint32_t node, uint32_t root, std::deque<uint32_t> &queue,
            std::vector<uint32_t> &seen) {
    for (const Waits::Wait *w = waits.begin(node); w != waits.end(node); ++w) {
      uint32_t length = distance[node] + isWait(w->why);
      ++steps;
      if (!open[w->to] || length >= best)
        continue;
      if (w->to == root) {
        best = length;
        keep(node, root, w->why);
        continue;
      }
      if (length >= distance[w->to])
        continue;
      if (distance[w->to] == nowhere)
        seen.push_back(w->to);
      distance[w->to] = length;
      from[w->to] = node;
      why[w->to] = w->why;
      if (isWait(w->why))
        queue.push_back(w->to);
      else
        queue.push_front(w->to);
    }
    return false;
  }

  void keep(uint32_t last, uint32_t root, Why lastWhy) {
    hops.assign(1, {last, root, lastWhy});
    for (uint32_t node = last; node != root; node = from[node])
      hops.push_back({from[node], node, why[node]});
  }

  /// From nodes to actions, runs of order on one rank to one step. The hops
  /// stand with the last one first, as who waits comes before what it waits
  /// for.
  void fold(Cycle &cycle) const {
    for (size_t i = 0; i < hops.size(); ++i) {
      uint32_t waiter = waits.actionOf(hops[i].to);
      uint32_t cause = waits.actionOf(hops[i].from);
      bool joins = !isWait(hops[i].why) && !cycle.steps.empty() &&
                   !isWait(cycle.steps.back().why);
      if (waiter == cause && !isWait(hops[i].why))
        continue;
      if (joins)
        cycle.steps.back().waitsFor = cause;
      else
        cycle.steps.push_back({waiter, cause, hops[i].why});
    }
    joinEnds(cycle.steps);
  }

  /// The cycle may begin within a run of order.
  static void joinEnds(std::vector<Cycle::Step> &steps) {
    if (steps.size() < 2 || isWait(steps.front().why) ||
        isWait(steps.back().why))
      return;
    steps.front().action = steps.back().action;
    steps.pop_back();
  }

  const Waits &waits;
  std::vector<bool> open;
  std::vector<uint32_t> distance, from;
  std::vector<Why> why;
  std::vector<Hop> hops;
  uint32_t best = std::numeric_limits<uint32_t>::max();
  size_t steps = 0;
};

} // namespace

Cycle shortestCycle(const Waits &waits, const std::vector<double> &times) {
  return Search(waits, times).run();
}

} // namespace meshwork::schedules
