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

/// Each virtual stage has copies of six kinds of buffers. Two were received:
/// they live from RECV_F to F, and from RECV_B to B or I. Two are to be sent:
/// from F to SEND_F, and from B or I to SEND_B. Two are kept: from F to B or W,
/// and from I to W. An action takes the lowest of the `copies` that is released
/// before it, as a run does (lib/Plan/CopyPool.h). Where none is, it takes the
/// one whose release stands first. 0 `copies`: as many of a kind as are alive
/// at once in the rank's order.
std::vector<Reuse> reusedCopies(const Table &table, const Index &index,
                                int32_t copies);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_COPIES_H
