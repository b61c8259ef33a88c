// What waits for what while a table runs: the graph behind the simulation and
// the deadlock check. Internal to lib/Schedules.
//
// A rank takes its actions in order. A computing action holds it up until its
// inputs are there and it is done. A transfer is only posted: it runs when both
// ends are posted (rendezvous), beside what the rank does next. Actions that
// start together are one node. Ranks of other mesh axes run the same table, so
// what they could wait for in a cycle is a cycle here too.
#ifndef MESHWORK_LIB_SCHEDULES_WAITS_H
#define MESHWORK_LIB_SCHEDULES_WAITS_H

#include "lib/Schedules/Copies.h"
#include "lib/Schedules/Index.h"

#include <string>
#include <vector>

namespace meshwork::schedules {

/// What a wait is for.
enum class Why : uint8_t {
  order,   // what stands before on the same rank
  data,    // the result of work, or what a transfer brings
  matched, // the other end of a transfer to be posted
  copy,    // a copy that is still in use
};

class Waits {
public:
  /// It takes the time of the edge between two stages, or of what starts
  /// together, or none.
  struct Wait {
    uint32_t to = 0;
    Why why = Why::order;
    bool isWork = false;
    int32_t edge = noEdge; // the lower stage
  };
  static constexpr int32_t noEdge = -1;
  struct Options {
    /// Whether transfers complete in the order of their rank.
    bool inOrder = false;
    /// Whether copies of buffers are used again, and how many of each kind and
    /// stage there are; 0: as many as are alive at once in the rank's order.
    bool reuse = false;
    int32_t copies = 0;
  };

  /// Of a table that passes checkRanges.
  Waits(const Table &table, const Index &index, const Options &options);

  uint32_t size() const { return numGroups * (options.inOrder ? 3 : 2); }
  /// An action is reached in its order, a transfer starts when it may, and
  /// ends.
  uint32_t reached(uint32_t action) const { return groupOf[action]; }
  uint32_t ended(uint32_t action) const { return numGroups + groupOf[action]; }
  uint32_t started(uint32_t action) const {
    return options.inOrder ? 2 * numGroups + groupOf[action] : reached(action);
  }
  /// The first action of a node.
  uint32_t actionOf(uint32_t node) const { return firstOf[node % numGroups]; }

  /// What waits for `node`.
  const Wait *begin(uint32_t node) const { return waits.data() + first[node]; }
  const Wait *end(uint32_t node) const {
    return waits.data() + first[node + 1];
  }
  /// When each node is reached at the earliest, if actions take `costs`;
  /// `never` for what waits for ever.
  static constexpr double never = -1;
  std::vector<double> times(const Costs &costs) const;

private:
  void findGroups();
  /// Twice: the first time waits are counted, so that none is stored twice.
  void addAll(const std::vector<Reuse> &reused);
  void addOrder(size_t rank);
  void addGroup(size_t rank, size_t begin, size_t end);
  void addInputs(uint32_t action);
  void addInput(uint32_t action, uint32_t from, Kind receives, int32_t edge);
  void addMatch(uint32_t action);
  void addReuse(const Reuse &reuse);
  void add(uint32_t from, const Wait &wait);
  void makeRoom();
  int32_t edgeBetween(int32_t one, int32_t other) const;
  std::vector<double> workTimes(const Costs &costs) const;

  const Table &table;
  const Index &index;
  Options options;
  uint32_t numGroups = 0;
  std::vector<uint32_t> groupOf, firstOf;
  std::vector<uint32_t> first, next; // `next` while the graph is made
  std::vector<Wait> waits;
};

/// See lib/Plan/Circle.h: order alone is no wait.
inline bool isWait(const Waits::Wait &wait) { return wait.why != Why::order; }

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_WAITS_H
