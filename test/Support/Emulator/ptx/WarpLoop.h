// Runs the lanes of a warp. Lanes at one instruction run together; where a
// branch divides them, those with the smallest program counter go first, so
// that they meet again behind a conditional or a loop.
#pragma once

#include "test/Support/Emulator/ptx/Warp.h"

namespace meshwork::ptx {

/// Until the warp has ended or waits at a barrier of the block. Throws Fault;
/// warp.current.pc is then at the instruction.
void runWarp(Warp &warp);

} // namespace meshwork::ptx
