// What goes from stage to stage: lists of their own, around that of the stage.
#include "passes/schedule/LowerToSchedule.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static ListOp currentList(OpBuilder &builder) {
  return cast<ListOp>(builder.getInsertionBlock()->getParentOp());
}

static StringAttr nameOf(OpBuilder &builder, StringRef what, int64_t stage,
                         mesh::Direction direction) {
  bool isForward = direction == mesh::Direction::forward;
  return builder.getStringAttr(
      Twine(isForward ? "activations " : "gradients ") + what + " stage " +
      Twine(stage));
}

LogicalResult Lowering::lowerSend(mesh::SendOp op) {
  ListOp list = currentList(builder);
  int64_t stage = list.getStage();
  bool isForward = op.getDirection() == mesh::Direction::forward;
  beginList(isForward ? ListKind::send : ListKind::send_grad, stage);
  SmallVector<Value> parts;
  uint64_t bytes = 0;
  for (Value input : op.getInputs()) {
    FailureOr<Value> part = view(input);
    if (failed(part))
      return failure();
    parts.push_back(*part);
    bytes += bytesOfType(input.getType());
  }
  schedule::SendOp::create(
      builder, op.getLoc(),
      nameOf(builder, "to", stage + (isForward ? 1 : -1), op.getDirection()),
      builder.i64(0), builder.i64(bytes), op.getAxisAttr(),
      builder.i64(op.getPeer()), parts);
  return success();
}

LogicalResult Lowering::lowerReceive(mesh::ReceiveOp op) {
  ListOp list = currentList(builder);
  bool isForward = op.getDirection() == mesh::Direction::forward;
  builder.setInsertionPoint(list);
  ListOp from = builder.addList(
      isForward ? ListKind::recv : ListKind::recv_grad, list.getStage());
  builder.toEndOf(from);
  SmallVector<Value> parts;
  uint64_t bytes = 0;
  for (Value result : op.getResults()) {
    FailureOr<Place> place = placement.of(result);
    if (failed(place))
      return failure();
    parts.push_back(builder.view(op.getLoc(), *place));
    bytes += bytesOfType(result.getType());
  }
  schedule::ReceiveOp::create(
      builder, op.getLoc(),
      nameOf(builder, "from", list.getStage() - (isForward ? 1 : -1),
             op.getDirection()),
      builder.i64(0), builder.i64(bytes), op.getAxisAttr(),
      builder.i64(op.getPeer()), parts);
  builder.toEndOf(list);
  return success();
}

} // namespace meshwork::schedule
