// Barriers of a block. A warp arrives as a whole: its lanes wait for each
// other first (WarpLoop.cpp).
#pragma once

#include "test/Support/Emulator/ptx/Warp.h"

namespace meshwork::ptx {

/// Instruction::count of a barrier; r: id, threads, to, predicate.
enum class BarrierKind : uint8_t { sync, arrive, count, all, any };

/// The warp, all of its lanes active, executes a barrier. Afterwards it is
/// ready, or waits (Warp::barrier); other warps may have become ready.
void arrive(Warp &warp, const Instruction &i, Mask active);

} // namespace meshwork::ptx
