// Experts of a rank as sorted rows and grouped products. The forward and the
// backward pass build the same rows; what one has built the other takes.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Exchange.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_EXPANDEXPERTSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

FailureOr<SmallVector<Value>> expanded(ExpertsOp op, BuiltRows &built) {
  if (op.getExchangeAxes())
    return exchanged(op, built);
  return ExpertRows(OpBuilder(op), op, MixtureOperands(op), built).forward();
}

FailureOr<SmallVector<Value>> expanded(ExpertsGradOp op, BuiltRows &built) {
  if (op.getExchangeAxes())
    return exchanged(op, built);
  return ExpertRows(OpBuilder(op), op, MixtureOperands(op), built)
      .backward(op.getGradient());
}

struct ExpandExpertsPass : impl::ExpandExpertsPassBase<ExpandExpertsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      BuiltRows built;
      function.walk([&](Operation *op) {
        if (auto experts = dyn_cast<ExpertsOp>(op))
          replace(op, expanded(experts, built));
        else if (auto grad = dyn_cast<ExpertsGradOp>(op))
          replace(op, expanded(grad, built));
      });
    }
  }

  void replace(Operation *op, FailureOr<SmallVector<Value>> values) {
    if (failed(values))
      return signalPassFailure();
    op->replaceAllUsesWith(*values);
    op->erase();
  }
};
} // namespace
} // namespace meshwork::transform
