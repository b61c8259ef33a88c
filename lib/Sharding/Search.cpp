// A* over shardings. What is left to send is at least what the local tensor has
// to grow: no step enlarges it by more bytes than it sends. That bound is
// consistent, so a state's first visit is its cheapest.
#include "lib/Sharding/Search.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "lib/Sharding/Moves.h"

namespace meshwork::sharding {
namespace {

constexpr uint32_t none = UINT32_MAX;

struct Node {
  Move move; // that led here; its `after` is the state
  int64_t elements;
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
      : problem(problem), moves(problem),
        wanted(Layout(problem, problem.to).elements()) {}

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

  /// All members of a class cost the same to go to from any of them, and the
  /// first one visited was the cheapest to reach.
  void permute(const Node &node, uint32_t index) {
    if (!permuted.insert(moves.permuteClass(node.move.after)).second)
      return;
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
      nodes.push_back(
          {candidate.move, candidate.elements, bytes, steps, parent, false});
    } else {
      Node &node = nodes[it->second];
      if (node.done || bytes > node.bytes ||
          (bytes == node.bytes && steps >= node.steps))
        return;
      node = {candidate.move, candidate.elements, bytes, steps, parent, false};
    }
    int64_t growth = std::max<int64_t>(0, wanted - candidate.elements);
    queue.push({bytes + growth * problem.elementBytes, steps, it->second});
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
  int64_t wanted; // elements of the goal's local tensor
  std::vector<Node> nodes;
  std::unordered_map<uint64_t, uint32_t> known;
  std::unordered_set<std::string> permuted;
  std::priority_queue<Entry> queue;
  size_t visited = 0;
};

} // namespace

std::optional<std::vector<Move>> search(const Problem &problem) {
  return Search(problem).run();
}

} // namespace meshwork::sharding
