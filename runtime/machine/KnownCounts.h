// Counts of repeats that the host has read in an earlier list of a microbatch.
#pragma once

#include "runtime/machine/Executor.h"
#include <map>

namespace meshwork::runtime {

/// Of one rank. A count that one list alone writes, at last outside of repeats,
/// is read in that list; lists behind it in the microbatch find it here and do
/// not wait for the device.
class KnownCounts {
public:
  explicit KnownCounts(const RankProgram &program);

  /// Of a gate of `list` that counts by `view`; none: it is to be read.
  std::optional<int32_t> find(const ListRun &list, uint32_t view) const;
  /// What a gate of `list` has read of `view`.
  void keep(const ListRun &list, const plan::Turn &gate, uint32_t view,
            int32_t count);

private:
  /// The list that writes it, and the last instruction there that does; a
  /// number for each of these.
  struct Count {
    uint32_t list, writer, number;
  };
  std::map<uint32_t, Count> counts;                       // by view
  std::map<std::pair<uint32_t, uint32_t>, int32_t> known; // and microbatch
};

} // namespace meshwork::runtime
