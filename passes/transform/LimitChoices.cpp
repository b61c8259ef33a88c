// Experts with room for so many choices: what finds none is dropped. GShard
// (Lepikhin et al., arXiv 2006.16668) has the form, and the order in which room
// is given: first choices of all tokens before second ones.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Passes.h"
#include "passes/transform/Routers.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_LIMITCHOICESPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

struct LimitChoicesPass : impl::LimitChoicesPassBase<LimitChoicesPass> {
  using LimitChoicesPassBase::LimitChoicesPassBase;

  void runOnOperation() override {
    if (capacity <= 0)
      return;
    SmallVector<ExpertsOp> all;
    getOperation().walk([&](ExpertsOp op) { all.push_back(op); });
    if (all.empty()) {
      error() << "the model has no experts; leave the line out";
      return signalPassFailure();
    }
    bool drops = false;
    for (ExpertsOp op : all) {
      FailureOr<bool> limited = limit(op);
      if (failed(limited))
        return signalPassFailure();
      drops |= *limited;
    }
    if (!drops)
      emitWarning(at())
          << "drops nothing: an expert has room for each token of "
             "its group; take a smaller factor, or leave the "
             "line out";
  }

  mlir::Location at() {
    return analysis::ofSpec("experts.capacity", getOperation().getLoc());
  }
  InFlightDiagnostic error() { return emitError(at()); }

  /// Whether an expert may be chosen more often than it has room.
  FailureOr<bool> limit(ExpertsOp op) {
    auto choices = tensorType(op.getChoices());
    DimsAttr dims = dimsOf(choices);
    if (choices.getRank() < 3 || dims.getNames()[0] != dims::samples)
      return error() << "found choices " << choices << ", expected <"
                     << dims::samples
                     << ", token dims..., choices>: groups are "
                        "of whole sequences";
    int64_t k = choices.getShape().back(),
            experts = tensorType(op.getGate()).getDimSize(0),
            tokens =
                choices.getNumElements() / k / choices.getDimSize(0) * group;
    double even = capacity * static_cast<double>(k) *
                  static_cast<double>(tokens) / static_cast<double>(experts);
    if (even > static_cast<double>(tokens - 1))
      return false; // There is room for each token.
    auto most = static_cast<int64_t>(std::ceil(even));
    OpBuilder builder(op);
    OfSameBlock inherit(builder, op);
    op.getChoicesMutable().assign(LimitChoicesOp::create(
        builder, op.getLoc(), op.getChoices(), static_cast<uint64_t>(experts),
        static_cast<uint64_t>(most), static_cast<uint64_t>(group)));
    op.setCapacity(static_cast<uint64_t>(most));
    op.setGroup(static_cast<uint64_t>(group));
    return true;
  }
};
} // namespace
} // namespace meshwork::transform
