// Runs one case: the four kernels in the emulator, or the plan's instructions
// on the CPU.
#pragma once

#include "test/Emulator/attention/Reference.h"

#include <cstdint>

namespace meshwork::attention::test {

/// Dense, as Inputs.
struct Outcome {
  Values out, lse, dq, dk, dv;
  uint64_t instructions = 0; // of warps in the emulator
};

/// `name` of the case in Cases.h. A kernel that fails, or writes between rows,
/// fails the test.
Outcome runOnDevice(const char *name, const Case &c, const Inputs &in);
Outcome runOnCpu(const Case &c, const Inputs &in);

} // namespace meshwork::attention::test
