// The choice of a row's largest elements: a warp for each row.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"

using namespace mlir;
namespace meshwork::codegen {

static constexpr int64_t warp = 32, warpsOfBlock = 4;

LogicalResult addCalls(schedule::TopKOp op, DeviceCalls &result) {
  FailureOr<Rows> scores = rowsOf(op, op.getScores(), -1, "scores"),
                  choices = rowsOf(op, op.getChoices(), -1, "choices");
  if (failed(scores) || failed(choices))
    return failure();
  DeviceCall call{"meshwork_top_k", {}};
  call.block = warp * warpsOfBlock;
  FailureOr<int64_t> grid = gridOf(op, scores->count * warp, call.block);
  if (failed(grid))
    return failure();
  call.grid = *grid;
  bool hasValid = bool(op.getValid());
  call.pointer(0).pointerIf(hasValid, 1).pointer(hasValid ? 2 : 1);
  call.integers({hasValid, warpsOfBlock, scores->count, scores->width,
                 choices->width, scores->stride, choices->stride,
                 static_cast<int64_t>(op.getGroups()),
                 static_cast<int64_t>(op.getKeptGroups()),
                 op.getGroupScore() == schedule::GroupScore::two_best});
  result.calls.push_back(std::move(call));
  return success();
}

} // namespace meshwork::codegen
