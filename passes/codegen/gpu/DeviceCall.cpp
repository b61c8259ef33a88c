#include "passes/codegen/gpu/DeviceCall.h"

#include "meshwork/Plan/Gpu.h"
#include "passes/codegen/gpu/Calls.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace meshwork::codegen {

bool hasDeviceCalls(Operation *op) {
#define MESHWORK_IS(Kind) || isa<schedule::Kind##Op>(op)
  return false MESHWORK_PLAN_INSTRUCTIONS_OF_GPU_KERNELS(MESHWORK_IS);
#undef MESHWORK_IS
}

FailureOr<DeviceCalls> deviceCallsOf(Operation *op) {
  DeviceCalls result;
  result.operands.assign(op->operand_begin(), op->operand_end());
  llvm::TypeSwitch<Operation *, LogicalResult> switchOp(op);
#define MESHWORK_CASE(Kind)                                                    \
  switchOp.Case([&](schedule::Kind##Op op) { return addCalls(op, result); });
  MESHWORK_PLAN_INSTRUCTIONS_OF_GPU_KERNELS(MESHWORK_CASE)
#undef MESHWORK_CASE
  if (failed(switchOp.Default([](Operation *) { return success(); })))
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
