// When buffers are alive, counted in instructions of the whole program.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "llvm/ADT/MapVector.h"

namespace meshwork::memory {

/// First and last instruction that touches a buffer, both included.
struct Life {
  int64_t first, last;
};

/// Lives of all buffers, in the order of their ops. A buffer that nothing
/// touches lives at instruction 0. Phases count on: once, step, microbatch,
/// update.
llvm::MapVector<schedule::BufferOp, Life> livesOf(schedule::ProgramOp program);

} // namespace meshwork::memory
