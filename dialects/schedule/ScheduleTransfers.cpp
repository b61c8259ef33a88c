// Verifiers of what moves between the stages of a pipeline.
#include "dialects/schedule/Schedule.h"

using namespace mlir;

namespace meshwork::schedule {

template <typename Transfer>
static LogicalResult verifyTransfer(Transfer op, plan::ListKind forward,
                                    plan::ListKind backward) {
  auto peer = static_cast<int64_t>(op.getPeer());
  if (op.getParts().empty() || peer < 0)
    return op.emitOpError()
           << "(C1) has " << op.getParts().size() << " parts and peer " << peer
           << ", expected a part and a number from 0";
  auto list = op->template getParentOfType<ListOp>();
  auto kind =
      list ? static_cast<plan::ListKind>(list.getKind()) : plan::ListKind::once;
  if ((kind != forward && kind != backward) || instructionsOf(list).size() != 1)
    return op.emitOpError()
           << "(C2) stands in a list of kind " << plan::EnumNameListKind(kind)
           << ", expected it alone in one of kind "
           << plan::EnumNameListKind(forward) << " or "
           << plan::EnumNameListKind(backward);
  return success();
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, plan::ListKind::send, plan::ListKind::send_grad);
}

LogicalResult ReceiveOp::verify() {
  return verifyTransfer(*this, plan::ListKind::recv, plan::ListKind::recv_grad);
}

} // namespace meshwork::schedule
