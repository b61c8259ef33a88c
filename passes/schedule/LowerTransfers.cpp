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

/// The instruction of a list, with the views of `values`.
template <typename Instruction, typename Op>
static LogicalResult emitParts(Op op, ValueRange values, ListKind kind,
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
  StringAttr source = builder.getStringAttr(nameOfTransfer(kind, stage));
  Instruction::create(builder, op.getLoc(), source, builder.i64(0),
                      builder.i64(bytes), op.getAxisAttr(),
                      builder.i64(op.getPeer()), parts);
  return success();
}

static LogicalResult emit(mesh::SendOp op, Lowering &to) {
  int64_t stage = currentList(to.builder).getStage();
  ListKind kind =
      isForward(op.getDirection()) ? ListKind::send : ListKind::send_grad;
  to.beginList(kind, stage);
  return emitParts<schedule::SendOp>(op, op.getInputs(), kind, stage, to);
}

static LogicalResult emit(mesh::ReceiveOp op, Lowering &to) {
  ListOp list = currentList(to.builder);
  int64_t stage = list.getStage();
  ListKind kind =
      isForward(op.getDirection()) ? ListKind::recv : ListKind::recv_grad;
  to.builder.setInsertionPoint(list);
  to.builder.toEndOf(to.builder.addList(kind, stage));
  if (failed(
          emitParts<schedule::ReceiveOp>(op, op.getResults(), kind, stage, to)))
    return failure();
  to.builder.toEndOf(list);
  return success();
}

void attachTransfers(MLIRContext *context) {
  attach<Computing, mesh::SendOp, mesh::ReceiveOp>(context);
}

} // namespace meshwork::schedule
