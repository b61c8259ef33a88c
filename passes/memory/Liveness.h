// When the buffers of a program are alive: what touches them, for lib/Plan.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "lib/Plan/Lives.h"

namespace meshwork::memory {

/// Buffers are numbered as their ops stand.
struct Liveness {
  /// The program has a table of actions.
  explicit Liveness(schedule::ProgramOp program);

  ::std::vector<schedule::BufferOp> buffers;
  plan::ActionTable table;
  plan::Lives lives;
};

} // namespace meshwork::memory
