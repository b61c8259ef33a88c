// The device calls of each kind of instruction; internal to DeviceCall.h.
#pragma once

#include "meshwork/Plan/Instructions.h"
#include "passes/codegen/gpu/DeviceCall.h"

namespace meshwork::codegen {

// Each appends the calls of `op`, whose operands are in `result` already.
#define MESHWORK_ADD_CALLS(Kind)                                               \
  mlir::LogicalResult addCalls(schedule::Kind##Op op, DeviceCalls &result);
MESHWORK_PLAN_INSTRUCTIONS_OF_GPU_KERNELS(MESHWORK_ADD_CALLS)
#undef MESHWORK_ADD_CALLS

} // namespace meshwork::codegen
