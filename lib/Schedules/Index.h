// Where each action of a table stands. Internal to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_INDEX_H
#define MESHWORK_LIB_SCHEDULES_INDEX_H

#include "lib/Schedules/Faults.h"
#include "lib/Schedules/Table.h"

#include <cstdint>
#include <vector>

namespace meshwork::schedules {

/// Adds what keeps a table from being indexed: stages, microbatches and ranks
/// out of range, fewer actions than the microbatches need. The table may be
/// anything.
void checkRanges(const Table &table, Faults &faults);

/// Actions have numbers, one rank's after another's. Memory is linear in the
/// actions of a table that passes checkRanges, which it must.
class Index {
public:
  static constexpr uint32_t none = UINT32_MAX;

  explicit Index(const Table &table);

  /// The first action that is this, on any rank; or none.
  uint32_t find(Kind kind, int32_t stage, int32_t microbatch) const;
  /// B, or I where there is no B: what needs the gradient from the next stage.
  uint32_t findGradient(int32_t stage, int32_t microbatch) const;
  /// B, or W where there is no B: after it nothing is kept.
  uint32_t findLast(int32_t stage, int32_t microbatch) const;

  uint32_t size() const { return begins.back(); }
  uint32_t number(size_t rank, size_t position) const {
    return begins[rank] + static_cast<uint32_t>(position);
  }
  uint32_t rankOf(uint32_t action) const { return ranks[action]; }
  uint32_t positionOf(uint32_t action) const {
    return action - begins[rankOf(action)];
  }
  const Action &action(uint32_t action) const;

  /// Whether the table moves its data by SEND and RECV.
  bool hasTransfers() const { return transfers; }

private:
  size_t cell(Kind kind, int32_t stage, int32_t microbatch) const;

  const Table &table;
  std::vector<uint32_t> begins; // of each rank, and the end
  std::vector<uint32_t> ranks;  // of each action
  std::vector<uint32_t> cells;
  bool transfers = false;
};

/// What a transfer moves, seen from one end.
struct Edge {
  Kind peerKind = Kind::forward;
  int32_t peerStage = 0; // may be out of range
  bool isSend = false;
};

bool isTransfer(Kind kind);
/// Of a transfer.
Edge edgeOf(const Action &action);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_INDEX_H
