// cp.async.bulk: copies to shared memory that signal an mbarrier, and boxes
// that are stored in groups. Which box: Boxes.h.
#pragma once

#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {

/// Finishes one copy whose mbarrier a parked warp waits for; false when there
/// is none. A Fault is that of `running`, at the copy's instruction.
bool landNext(Block &block, const Warp *&running);

/// The block has ended: copies whose mbarrier nobody waited for are a Fault.
void checkLoadsDone(Block &block, const Warp *&running);

/// The warp ends: what it stored is in global memory. A store whose shared
/// memory was never waited for is a Fault.
void finishStores(Warp &warp);

/// After `cp.async.bulk`.
void decodeBulk(Line &line);

} // namespace meshwork::ptx
