// Scores at choices, and the gradient of that: a thread for each result.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"

using namespace mlir;
namespace meshwork::codegen {

/// `function` takes the operands in the order of the instruction. A row has as
/// many results as experts, or choices.
static LogicalResult addPick(Operation *op, StringRef function, Value scores,
                             Value choices, Value picked, bool ofExperts,
                             DeviceCalls &result) {
  FailureOr<Rows> all = rowsOf(op, scores, -1, "scores"),
                  chosen = rowsOf(op, choices, -1, "choices"),
                  few = rowsOf(op, picked, -1, "picked scores");
  if (failed(all) || failed(chosen) || failed(few))
    return failure();
  DeviceCall call{function.str(), {}};
  int64_t results = ofExperts ? all->width : chosen->width;
  FailureOr<int64_t> grid = gridOf(op, chosen->count * results, call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  call.pointer(0).pointer(1).pointer(2).integers(
      {call.block, chosen->count, all->width, chosen->width, all->stride,
       chosen->stride, few->stride});
  result.calls.push_back(std::move(call));
  return success();
}

LogicalResult addCalls(schedule::PickOp op, DeviceCalls &result) {
  return addPick(op, "meshwork_pick", op.getScores(), op.getChoices(),
                 op.getOut(), /*ofExperts=*/false, result);
}

LogicalResult addCalls(schedule::PickGradOp op, DeviceCalls &result) {
  return addPick(op, "meshwork_pick_grad", op.getDscores(), op.getChoices(),
                 op.getDout(), /*ofExperts=*/true, result);
}

} // namespace meshwork::codegen
