// Leaves the targets at the ends of documents out of the loss: the launcher
// makes them -1 and counts the others.
#include "dialects/transformer/Facts.h"
#include "passes/transform/Loss.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_COUNTTARGETSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

struct CountTargetsPass : impl::CountTargetsPassBase<CountTargetsPass> {
  /// Of the step, over all samples. A rank has a share of the samples, so the
  /// sum is partial there and reduced like any other.
  static Value addCount(func::FuncOp loss) {
    MLIRContext *context = loss.getContext();
    auto tokens = tensorType(loss.getArgument(0));
    auto samples =
        DimsAttr::get(context, dimsOf(tokens).getNames().take_front(1));
    Type each =
        namedType({tokens.getDimSize(0)}, samples, Float32Type::get(context));
    Value counts = addInput(loss, "target_counts", each);
    auto builder = OpBuilder::atBlockBegin(&loss.getBody().front());
    return ReduceOp::create(builder, loss.getLoc(), Reduction::add, counts,
                            samples);
  }

  void runOnOperation() override {
    func::FuncOp loss = lossOf(getOperation());
    if (!loss)
      return signalPassFailure();
    setInput(loss.getArgument(1), "inner_targets");
    Value count = addCount(loss);
    loss.walk([&](HeadLossOp op) { op.getCountedMutable().assign(count); });
  }
};
} // namespace
} // namespace meshwork::transform
