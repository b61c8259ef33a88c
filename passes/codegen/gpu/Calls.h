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

/// Rows of so many bytes, `rowStride` bytes apart.
struct FilledBytes {
  int64_t rows, rowStride, bytes, alignBytes, elementBytes;
};
/// Appends the call that fills them, of an operand, with 4 bytes that repeat.
mlir::LogicalResult addFill(mlir::Operation *op, int64_t operand,
                            const FilledBytes &of, uint32_t pattern,
                            DeviceCalls &result);

} // namespace meshwork::codegen
