// What goes from stage to stage: lists of their own, around that of the stage.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static ListOp currentList(OpBuilder &builder) {
  return cast<ListOp>(builder.getInsertionBlock()->getParentOp());
}

static bool isForward(mesh::Direction direction) {
  return direction == mesh::Direction::forward;
}

/// The instruction of a list, with the views of `values`; `what` is "to" or
/// "from".
template <typename Instruction, typename Op>
static LogicalResult emitParts(Op op, ValueRange values, StringRef what,
                               int64_t stage, Lowering &to) {
  Views views(to);
  SmallVector<Value> parts;
  uint64_t bytes = 0;
  for (Value value : values) {
    parts.push_back(views.of(value));
    bytes += bytesOfType(value.getType());
  }
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  StringAttr source = builder.getStringAttr(
      Twine(isForward(op.getDirection()) ? "activations " : "gradients ") +
      what + " stage " + Twine(stage));
  Instruction::create(builder, op.getLoc(), source, builder.i64(0),
                      builder.i64(bytes), op.getAxisAttr(),
                      builder.i64(op.getPeer()), parts);
  return success();
}

static LogicalResult emit(mesh::SendOp op, Lowering &to) {
  int64_t stage = currentList(to.builder).getStage();
  bool forward = isForward(op.getDirection());
  to.beginList(forward ? ListKind::send : ListKind::send_grad, stage);
  return emitParts<schedule::SendOp>(op, op.getInputs(), "to",
                                     forward ? stage + 1 : stage - 1, to);
}

static LogicalResult emit(mesh::ReceiveOp op, Lowering &to) {
  ListOp list = currentList(to.builder);
  int64_t stage = list.getStage();
  bool forward = isForward(op.getDirection());
  to.builder.setInsertionPoint(list);
  to.builder.toEndOf(to.builder.addList(
      forward ? ListKind::recv : ListKind::recv_grad, stage));
  if (failed(emitParts<schedule::ReceiveOp>(
          op, op.getResults(), "from", forward ? stage - 1 : stage + 1, to)))
    return failure();
  to.builder.toEndOf(list);
  return success();
}

void attachTransfers(MLIRContext *context) {
  attach<Computing, mesh::SendOp, mesh::ReceiveOp>(context);
}

} // namespace meshwork::schedule
