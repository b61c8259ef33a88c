// An instruction by its kind: no reader of plans lists the kinds.
#pragma once

#include "meshwork/Plan/Instructions.h"
#include <string>

namespace meshwork::plan {

/// `visit` of the instruction's operation, a `const Matmul &` or any other of
/// the union; Result() when it has none, or one that is not known.
template <typename Result, typename Visit>
Result visitOperation(const Instruction &instruction, Visit visit) {
  switch (instruction.op_type()) {
#define MESHWORK_VISIT(Kind)                                                   \
  case Operation::Kind:                                                        \
    return visit(*instruction.op_as_##Kind());
    MESHWORK_PLAN_INSTRUCTIONS(MESHWORK_VISIT)
#undef MESHWORK_VISIT
  case Operation::NONE:
    break;
  }
  return Result();
}

/// Whether a GPU runs it by the kernels that the instruction lists.
inline bool hasGpuKernels(Operation kind) {
  switch (kind) {
#define MESHWORK_HAS_KERNELS(Kind) case Operation::Kind:
    MESHWORK_PLAN_INSTRUCTIONS_OF_GPU_KERNELS(MESHWORK_HAS_KERNELS)
#undef MESHWORK_HAS_KERNELS
    return true;
  default:
    return false;
  }
}

/// "attention_grad", as in the schedule dialect.
std::string nameOf(Operation kind);

} // namespace meshwork::plan
