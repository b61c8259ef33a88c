// Runs the lanes of a warp. Lanes at one instruction run together; where a
// branch divides them, those with the smallest program counter go first, so
// that they meet again behind a conditional or a loop.
#pragma once

#include "test/Support/Emulator/ptx/Warp.h"

namespace meshwork::ptx {

/// Until the warp has ended, waits at a barrier of the block, or is parked.
/// Throws Fault; warp.current.pc is then at the instruction.
void runWarp(Warp &warp);

/// Whether a warp can go on that may be parked: the phase of an mbarrier has
/// completed.
bool resume(Warp &warp);

} // namespace meshwork::ptx
