// Replaces model ops by what they are made of.
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// Gives attention with dropout its seed, step and first sample.
void addRandomOperands(AttentionOp op) {
  if (op.getTerms().getRate().isZero() || !op.getRandom().empty())
    return;
  OpBuilder builder(op);
  Type scalar = RankedTensorType::get({}, builder.getI32Type());
  for (StepInput kind :
       {StepInput::seed, StepInput::step, StepInput::first_sample})
    op.getRandomMutable().append(
        StepInputOp::create(builder, op.getLoc(), scalar, kind).getResult());
}

/// An op is of the last layer that something it reads is of. What reads a
/// parameter of no layer behind the layers is behind them, too.
void declareLayers(func::FuncOp function) {
  llvm::DenseSet<Operation *> behind;
  for (Operation &op : function.getBody().front()) {
    if (op.getNumResults() == 0 || layerOf(&op))
      continue;
    std::optional<int64_t> layer;
    bool readsOther = false, isBehind = false;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp()) {
        std::optional<int64_t> own = layerOf(source);
        layer = std::max(layer, own);
        readsOther |= isa<ParameterOp>(source) && !own;
        isBehind |= behind.contains(source);
      }
    if (isBehind || (readsOther && layer))
      behind.insert(&op);
    else if (!isa<ParameterOp>(op))
      setLayer(&op, layer);
  }
}

struct DecomposePass : impl::DecomposePassBase<DecomposePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        declareLayers(function);
    getOperation().walk([](AttentionOp op) { addRandomOperands(op); });
    getOperation().walk([](DecomposableOpInterface op) {
      OpBuilder builder(op);
      OfSameBlock inherit(builder, op);
      op->getResult(0).replaceAllUsesWith(op.decompose(builder));
      op->erase();
    });
  }
};
} // namespace
} // namespace meshwork::transform
