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

/// What the gradient knows of each row, where `c` has some of its keys only.
struct RowsOfAll {
  Values out, lse;
};

/// `name` of the case in Cases.h. A kernel that fails, or writes between rows,
/// fails the test. Without `all` the keys of the case are all of a row's.
Outcome runOnDevice(const char *name, const Case &c, const Inputs &in,
                    const RowsOfAll *all = nullptr);
Outcome runOnCpu(const Case &c, const Inputs &in);

} // namespace meshwork::attention::test
