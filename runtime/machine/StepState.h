// What every device asks about the moment an instruction runs in.
#pragma once

#include "meshwork/Plan/Plan.h"

namespace meshwork::runtime {

/// What an instruction needs to know about the moment it runs in.
struct StepState {
  /// It is the first of the step to add to its destination, so it sets it.
  bool sets = false;
  /// It runs on a thread of its own, beside the rank's: that one's team is
  /// busy.
  bool isAlone = false;
};

/// Whether this run adds to the destination; see plan::Accumulate.
inline bool accumulates(plan::Accumulate mode, const StepState &state) {
  return mode == plan::Accumulate::yes ||
         (mode == plan::Accumulate::after_first && !state.sets);
}

} // namespace meshwork::runtime
