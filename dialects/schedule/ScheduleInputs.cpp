// Verifiers of what the runtime writes before a step and reads after one.
#include "dialects/schedule/OpTables.h"
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {

/// `check` of lib/Plan judges what `pack` makes of an op with one view.
template <typename Op, typename Pack, typename Check>
static LogicalResult verifyView(Op op, Pack pack, Check check) {
  if (!isView(op.getView()))
    return op.emitOpError("(C1) has what is no schedule.view");
  OpTables alone(op);
  const auto &table = pack(alone);
  auto views = alone.views();
  return alone.verified(views.ok() ? check(table, views->front())
                                   : views.status());
}

LogicalResult InputOp::verify() {
  if (getKind() == InputKind::bias_correction && !getBase())
    return emitOpError("(C4) bias_correction has no base");
  return verifyView(
      *this,
      [&](OpTables &alone) -> const plan::Input & {
        return alone.pack<plan::Input>(*alone.tables().input(*this));
      },
      plan::checkInput);
}

LogicalResult ResultOp::verify() {
  return verifyView(
      *this,
      [&](OpTables &alone) -> const plan::Result & {
        return alone.pack<plan::Result>(*alone.tables().result(*this));
      },
      plan::checkResult);
}

} // namespace meshwork::schedule
