// Who waits for whom: the shortest circle of waits, and the table that tells
// it.
//
//   auto circle = shortestCircle(graph, open); // no hops: nobody hangs
//   circleText(circle.isShortest, rows);       // rows: one for each hop
//
// A graph has size() nodes. The edges of a node, begin(node) to end(node), lead
// to the nodes that wait for it: each edge has one as `to`. Where `to` merely
// stands behind the node in an order, isWait(*edge) is false: that costs
// nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace meshwork::plan {

/// `to` waits for `from`; the circle of hops begins with the last one, as who
/// waits comes before what it waits for.
template <typename Edge> struct Circle {
  struct Hop {
    uint32_t from = 0, to = 0;
    const Edge *edge = nullptr;
  };
  std::vector<Hop> hops;
  /// False where the graph was too large to be sure.
  bool isShortest = true;
};

template <typename Graph, typename Edge> class CircleSearch {
public:
  CircleSearch(const Graph &graph, std::vector<bool> open)
      : graph(graph), open(std::move(open)), distance(graph.size(), nowhere),
        from(graph.size()), by(graph.size()) {
    dropEnds();
  }

  Circle<Edge> run() {
    for (uint32_t node = 0; node < graph.size() && best > 0; ++node)
      if (open[node] && steps < mostSteps)
        searchFrom(node);
    circle.isShortest = steps < mostSteps;
    return std::move(circle);
  }

private:
  static constexpr uint32_t nowhere = UINT32_MAX;
  // Edges looked at before the best circle so far is taken.
  static constexpr size_t mostSteps = 100'000'000;

  /// Closes what waits, but is waited for by nothing that does.
  void dropEnds() {
    std::vector<uint32_t> count(graph.size(), 0), ends;
    std::vector<std::vector<uint32_t>> before(graph.size());
    for (uint32_t node = 0; node < graph.size(); ++node) {
      if (!open[node])
        continue;
      for (const Edge *e = graph.begin(node); e != graph.end(node); ++e) {
        ++count[node]; // all that waits for it is open too
        before[e->to].push_back(node);
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
    std::vector<uint32_t> seen = {root};
    std::deque<uint32_t> queue = {root};
    distance[root] = 0;
    while (!queue.empty()) {
      uint32_t node = queue.front();
      queue.pop_front();
      for (const Edge *e = graph.begin(node); e != graph.end(node); ++e)
        follow(*e, node, root, queue, seen);
    }
    for (uint32_t node : seen)
      distance[node] = nowhere;
  }

  void follow(const Edge &edge, uint32_t node, uint32_t root,
              std::deque<uint32_t> &queue, std::vector<uint32_t> &seen) {
    bool counts = isWait(edge);
    uint32_t length = distance[node] + counts;
    ++steps;
    if (!open[edge.to] || length >= best)
      return;
    if (edge.to == root) {
      best = length;
      return keep(node, root, edge);
    }
    if (length >= distance[edge.to])
      return;
    if (distance[edge.to] == nowhere)
      seen.push_back(edge.to);
    distance[edge.to] = length;
    from[edge.to] = node;
    by[edge.to] = &edge;
    counts ? queue.push_back(edge.to) : queue.push_front(edge.to);
  }

  void keep(uint32_t last, uint32_t root, const Edge &edge) {
    circle.hops.assign(1, {last, root, &edge});
    for (uint32_t node = last; node != root; node = from[node])
      circle.hops.push_back({from[node], node, by[node]});
  }

  const Graph &graph;
  std::vector<bool> open;
  std::vector<uint32_t> distance, from;
  std::vector<const Edge *> by;
  Circle<Edge> circle;
  uint32_t best = UINT32_MAX;
  size_t steps = 0;
};

/// Among the nodes that are `open`: all that waits for one of these is, too.
template <typename Graph>
auto shortestCircle(const Graph &graph, std::vector<bool> open) {
  using Edge = std::remove_cvref_t<decltype(*graph.begin(0))>;
  return CircleSearch<Graph, Edge>(graph, std::move(open)).run();
}

/// One row for each who waits, in the order of the circle.
struct CircleRow {
  std::string rank, action, what, waitsFor, why;
};
/// "each of these waits for the next, ..." and the table; a column in which all
/// rows are empty is left out.
std::string circleText(bool isShortest, std::vector<CircleRow> rows);

} // namespace meshwork::plan
