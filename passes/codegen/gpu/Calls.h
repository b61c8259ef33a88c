// The device calls of each kind of instruction; internal to DeviceCall.h.
#pragma once

#include "passes/codegen/gpu/DeviceCall.h"

namespace meshwork::codegen {

// Each appends the calls of `op`, whose operands are in `result` already.
mlir::LogicalResult addCalls(schedule::EmbeddingOp op, DeviceCalls &result);
mlir::LogicalResult addCalls(schedule::EmbeddingGradOp op, DeviceCalls &result);
mlir::LogicalResult addCalls(schedule::CopyBlockOp op, DeviceCalls &result);
mlir::LogicalResult addCalls(schedule::FillOp op, DeviceCalls &result);
mlir::LogicalResult addCalls(schedule::AttentionOp op, DeviceCalls &result);
mlir::LogicalResult addCalls(schedule::AttentionGradOp op, DeviceCalls &result);

} // namespace meshwork::codegen
