// A* over shardings.
#include "lib/Sharding/Search.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "lib/Sharding/Bound.h"
#include "lib/Sharding/Moves.h"

namespace meshwork::sharding {
namespace {

constexpr uint32_t none = UINT32_MAX;

struct Node {
  Move move; // that led here; its `after` is the state
  int64_t elements;
  int64_t left; // bytes that are at least still to be sent
  int64_t bytes;
  int32_t steps;
  uint32_t parent;
  bool done;
};

/// Least estimate first, then fewest steps, then first found.
struct Entry {
  int64_t estimate;
  int32_t steps;
  uint32_t node;
  bool operator<(const Entry &other) const {
    if (estimate != other.estimate)
      return estimate > other.estimate;
    return steps != other.steps ? steps > other.steps : node > other.node;
  }
};

class Search {
public:
  explicit Search(const Problem &problem)
      : problem(problem), moves(problem), bound(problem) {}

  std::optional<std::vector<Move>> run() {
    Move start;
    start.after = problem.from;
    reach({start, Layout(problem, problem.from).elements()}, none, 0, 0);
    while (!queue.empty()) {
      Entry entry = queue.top();
      queue.pop();
      if (nodes[entry.node].done)
        continue;
      nodes[entry.node].done = true;
      if (nodes[entry.node].move.after == problem.to)
        return pathTo(entry.node);
      if (++visited > maxSearchStates)
        return std::nullopt;
      expand(entry.node);
    }
    return std::nullopt; // not reached: all can be gathered, then sliced
  }

private:
  void expand(uint32_t index) {
    Node node = nodes[index]; // a copy, as `nodes` grows
    for (const Candidate &candidate : moves.from(node.move.after))
      reach(candidate, index, node.bytes + candidate.move.bytesSent,
            node.steps + 1);
    permute(node, index);
  }

  /// A permute costs the same from all members of a class, so only a member
  /// that was reached more cheaply than those before leads anywhere new.
  void permute(const Node &node, uint32_t index) {
    std::pair<int64_t, int32_t> cost{node.bytes, node.steps};
    auto [it, isNew] =
        permuted.try_emplace(moves.permuteClass(node.move.after), cost);
    if (!isNew && it->second <= cost)
      return;
    it->second = cost;
    int64_t bytes = node.elements * problem.elementBytes;
    for (State target : moves.permuteTargets(node.move.after))
      reach({{Step::Kind::permute, -1, -1, bytes, target}, node.elements},
            index, node.bytes + bytes, node.steps + 1);
  }

  void reach(const Candidate &candidate, uint32_t parent, int64_t bytes,
             int32_t steps) {
    auto [it, isNew] = known.try_emplace(candidate.move.after.bits,
                                         static_cast<uint32_t>(nodes.size()));
    if (isNew) {
      Layout layout(problem, candidate.move.after);
      nodes.push_back({candidate.move, candidate.elements,
                       bound.elements(layout) * problem.elementBytes, bytes,
                       steps, parent, false});
    } else {
      Node &node = nodes[it->second];
      if (node.done || bytes > node.bytes ||
          (bytes == node.bytes && steps >= node.steps))
        return;
      node = {
          candidate.move, candidate.elements, node.left, bytes, steps, parent,
          false};
    }
    queue.push({bytes + nodes[it->second].left, steps, it->second});
  }

  std::vector<Move> pathTo(uint32_t index) const {
    std::vector<Move> path;
    for (; nodes[index].parent != none; index = nodes[index].parent)
      path.push_back(nodes[index].move);
    std::reverse(path.begin(), path.end());
    return path;
  }

  const Problem &problem;
  Moves moves;
  Bound bound;
  std::vector<Node> nodes;
  std::unordered_map<uint64_t, uint32_t> known;
  /// The cheapest member visited of each class.
  std::unordered_map<std::string, std::pair<int64_t, int32_t>> permuted;
  std::priority_queue<Entry> queue;
  size_t visited = 0;
};

} // namespace

std::optional<std::vector<Move>> search(const Problem &problem) {
  return Search(problem).run();
}

} // namespace meshwork::sharding
