// The tiny plan on a GPU, with kernels that train and one more that goes wrong.
#pragma once

#include "test/Plan/TestPlan.h"
#include <cstdint>
#include <string>

namespace meshwork::runtime::test {

struct Fault {
  bool inUpdate;    // at its end, else at that of the microbatch
  uint32_t launch;  // from this one of the kernel on a GPU, of all its ranks
  std::string body; // PTX; %p is the address of x, of the rank at fault
  uint32_t rank = 0;
  bool meets = false; // in the microbatch: x is summed over ranks behind it
};

/// Two microbatches a step. The loss is the mean of the token ids, so that
/// each step has one of its own; the kernel at fault is "late" (Launch).
plan::PlanT faultyPlan(const Fault &fault, uint32_t ranks = 1);

} // namespace meshwork::runtime::test
