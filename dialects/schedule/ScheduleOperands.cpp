// Verifiers of instructions that can have something wrong that their tables
// cannot. Types and shapes of operands are judged by the check that the
// launcher runs on plans (lib/Plan/CheckOperands.h).
#include "dialects/schedule/OpTables.h"

using namespace mlir;

namespace meshwork::schedule {

SmallVector<Transfer> CollectiveOp::getParts() {
  SmallVector<Transfer> parts;
  for (auto [src, dst, dim, toDim] :
       llvm::zip_equal(getInputs(), getOutputs(), getDims(), getToDims()))
    parts.push_back({src, dst, dim, toDim});
  return parts;
}

LogicalResult CollectiveOp::verify() {
  size_t count = getInputs().size();
  if (getOutputs().size() != count || getDims().size() != count ||
      getToDims().size() != count)
    return emitOpError() << "(C1) has " << count << " inputs, "
                         << getOutputs().size() << " outputs, "
                         << getDims().size() << " dims and "
                         << getToDims().size() << " to_dims, expected as many";
  return verifyOperands(*this);
}

/// Of a send or a receive, which is `operation`.
template <typename Op>
static LogicalResult verifyTransfer(Op op, plan::Operation operation) {
  if (auto peer = static_cast<int64_t>(op.getPeer()); peer < 0)
    return op.emitOpError()
           << "(C1) has the peer " << peer << ", expected a number from 0";
  auto list = op->template getParentOfType<ListOp>();
  plan::ListShape shape{plan::ListKind::once};
  if (list)
    shape = {static_cast<plan::ListKind>(list.getKind()), 0,
             static_cast<uint32_t>(instructionsOf(list).size())};
  return failed(verifyOperands(op))
             ? failure()
             : OpTables(op).verified(plan::checkPlace(operation, shape));
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, plan::Operation::Send);
}
LogicalResult ReceiveOp::verify() {
  return verifyTransfer(*this, plan::Operation::Receive);
}

LogicalResult MatmulOp::verify() {
  if (size_t scales = getScales().size(); scales != 0 && scales != 2)
    return emitOpError() << "(C3) has " << scales
                         << " scales, expected none or two";
  return verifyOperands(*this);
}

/// A table has a dropout, or none, and does not say that ranks share it.
static LogicalResult verifyAttention(Operation *op,
                                     const transformer::AttentionPart &part) {
  double rate = part.terms.getRate().convertToDouble();
  size_t random = part.random.size();
  bool isNone = rate == 0 && random == 0;
  if (!isNone && !(rate > 0 && rate < 1 && (random == 1 || random == 2)))
    return op->emitOpError() << "(C5) has rate " << rate << " and " << random
                             << " random views, expected 0 and none, or less "
                                "than 1 and one or two";
  if (auto sharing = part.terms.getSharing();
      sharing != transformer::Sharing::none)
    return op->emitOpError()
           << "(C8) is shared " << transformer::stringifySharing(sharing)
           << ", expected nothing of the kind: a program is of one rank";
  return verifyOperands(op);
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getPart());
}
LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, getPart());
}

} // namespace meshwork::schedule
