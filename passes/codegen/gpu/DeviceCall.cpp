#include "passes/codegen/gpu/DeviceCall.h"

#include "meshwork/Plan/Gpu.h"
#include "passes/codegen/gpu/Calls.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace meshwork::codegen {

bool hasDeviceCalls(Operation *op) {
  return isa<schedule::EmbeddingOp, schedule::EmbeddingGradOp,
             schedule::CopyBlockOp, schedule::FillOp, schedule::AttentionOp,
             schedule::AttentionGradOp>(op);
}

FailureOr<DeviceCalls> deviceCallsOf(Operation *op) {
  DeviceCalls result;
  result.operands.assign(op->operand_begin(), op->operand_end());
  LogicalResult added =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<schedule::EmbeddingOp, schedule::EmbeddingGradOp,
                schedule::CopyBlockOp, schedule::FillOp, schedule::AttentionOp,
                schedule::AttentionGradOp>(
              [&](auto op) { return addCalls(op, result); })
          .Default([](Operation *) { return success(); });
  if (failed(added))
    return failure();
  return result;
}

FailureOr<uint64_t> gpuWorkspaceBytes(schedule::ProgramOp program) {
  uint64_t most = 0;
  WalkResult walked = program.walk([&](Operation *op) {
    if (isa<schedule::MatmulOp>(op))
      most = std::max(most, plan::matmulWorkspaceBytes);
    if (!hasDeviceCalls(op))
      return WalkResult::advance();
    FailureOr<DeviceCalls> calls = deviceCallsOf(op);
    if (failed(calls))
      return WalkResult::interrupt();
    most = std::max(most, calls->workspaceBytes);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return most;
}

} // namespace meshwork::codegen
