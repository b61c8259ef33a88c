// mbarrier: init, arrive, wait. Lanes whose phase is not complete stay at
// their try_wait (Flow::phase) and the warp gives way; see WarpLoop.cpp.
#pragma once

#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {

/// The mbarrier at a shared address, as a lane uses it. Throws a Fault when
/// there is none, or the warp cannot know that it was initialized.
MBarrier &mbarrierAt(Warp &warp, uint64_t address, unsigned lane);

/// Lanes of `active`, at a try_wait, whose phase is complete.
Mask lanesWithPhase(Warp &warp, const Instruction &i, Mask active);

/// Bytes of a bulk copy have come, and what its warp had done is known.
void completeBytes(MBarrier &mbarrier, uint32_t bytes,
                   const Races::Clock &clock);

/// Whether a warp that cannot go on waits for it.
bool isWaitedFor(Block &block, uint32_t mbarrier);

/// A fence that makes mbarriers which the warp initialized known to copies.
void fenceMbarriers(Warp &warp);

/// No copy is under way. If warps still wait for phases: a Fault that names the
/// mbarriers and what they lack, at the first of these warps.
void checkNotDeadlocked(Block &block, const Warp *&running);

} // namespace meshwork::ptx
