// Runs a grid: blocks one after the other, or on several threads.
#pragma once

#include "test/Support/Emulator/ptx/Warp.h"

#include "absl/status/status.h"

namespace meshwork::ptx {

struct Counts {
  uint64_t instructions = 0;     // of warps
  uint64_t laneInstructions = 0; // of active lanes
};

/// `launch` is checked (sizes, parameters). A fault stops the grid and is the
/// error: kernel, line and text of the instruction, block and thread.
absl::Status runGrid(const Launch &launch, unsigned numThreads, Counts &counts);

} // namespace meshwork::ptx
