// Which action takes a copy of a buffer that another one used before. Internal
// to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_COPIES_H
#define MESHWORK_LIB_SCHEDULES_COPIES_H

#include "lib/Schedules/Index.h"

#include <vector>

namespace meshwork::schedules {

/// `take` may begin when `release` has ended. Both stand on one rank; `release`
/// may stand later, and then waits for itself.
struct Reuse {
  uint32_t release = 0;
  uint32_t take = 0;
};

/// Each virtual stage has copies of six kinds of buffers: what it received
/// (two: from RECV_F to F, from RECV_B to B or I), what it has not yet sent
/// (two: from F to SEND_F, from B or I to SEND_B), what it keeps (from F to B
/// or W) and keeps besides (from I to W). An action takes the lowest of the
/// `copies` whose release stands before it, as what runs does
/// (lib/Plan/CopyPool.h); where none does, the one whose release stands first.
/// 0 `copies`: as many of a kind as are alive at once in the rank's order.
std::vector<Reuse> reusedCopies(const Table &table, const Index &index,
                                int32_t copies);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_COPIES_H
