// Verifiers of what computes. Types and shapes of operands are judged by the
// check that the launcher runs on plans (lib/Plan/CheckOperands.h); what only
// an op can have wrong, and its table cannot, is looked at here.
#include "dialects/schedule/ProgramTables.h"

using namespace mlir;

namespace meshwork::schedule {

LogicalResult LaunchOp::verify() {
  auto outputs = static_cast<int64_t>(getNumOutputs()),
       items = static_cast<int64_t>(getItems()),
       args = static_cast<int64_t>(getArgs().size());
  if (outputs < 1 || outputs > args || items < 1)
    return emitOpError() << "(C1) writes " << outputs << " of " << args
                         << " args with " << items
                         << " items, expected at least one of each";
  return success();
}

LogicalResult MatmulOp::verify() {
  if (size_t scales = getScales().size(); scales != 0 && scales != 2)
    return emitOpError() << "(C3) has " << scales
                         << " scales, expected none or two";
  return verifyOperands(*this);
}

/// A table has a dropout, or none.
template <typename Op> static LogicalResult verifyRate(Op op) {
  double rate = op.getRate().convertToDouble();
  size_t random = op.getRandom().size();
  bool isNone = rate == 0 && random == 0;
  if (isNone || (rate > 0 && rate < 1 && (random == 1 || random == 2)))
    return success();
  return op.emitOpError()
         << "(C5) has rate " << rate << " and " << random
         << " random views, expected 0 and none, or less than 1 and one or two";
}

LogicalResult AttentionOp::verify() {
  return failed(verifyRate(*this)) ? failure() : verifyOperands(*this);
}
LogicalResult AttentionGradOp::verify() {
  return failed(verifyRate(*this)) ? failure() : verifyOperands(*this);
}
LogicalResult EmbeddingOp::verify() { return verifyOperands(*this); }
LogicalResult EmbeddingGradOp::verify() { return verifyOperands(*this); }
LogicalResult RotaryTableOp::verify() { return verifyOperands(*this); }
LogicalResult FillOp::verify() { return verifyOperands(*this); }
LogicalResult CopyBlockOp::verify() { return verifyOperands(*this); }

} // namespace meshwork::schedule
