// Replaces model ops by what they are made of.
#include "dialects/transformer/Transformer.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// Gives attention with dropout its seed, step and first sample.
void addRandomOperands(AttentionOp op) {
  if (op.getDropoutRate().isZero() || !op.getRandom().empty())
    return;
  OpBuilder builder(op);
  Type scalar = RankedTensorType::get({}, builder.getI32Type());
  for (StepInput kind :
       {StepInput::seed, StepInput::step, StepInput::first_sample})
    op.getRandomMutable().append(
        StepInputOp::create(builder, op.getLoc(), scalar, kind).getResult());
}

struct DecomposePass : impl::DecomposePassBase<DecomposePass> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) { addRandomOperands(op); });
    getOperation().walk([](DecomposableOpInterface op) {
      OpBuilder builder(op);
      op->getResult(0).replaceAllUsesWith(op.decompose(builder));
      op->erase();
    });
  }
};
} // namespace
} // namespace meshwork::transform
