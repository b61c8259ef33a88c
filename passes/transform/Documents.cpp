// Keeps attention within documents: where each begins comes in as a third
// argument, beside tokens and targets.
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Loss.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_SEPARATEDOCUMENTSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

struct SeparateDocumentsPass
    : impl::SeparateDocumentsPassBase<SeparateDocumentsPass> {
  void runOnOperation() override {
    func::FuncOp loss = lossOf(getOperation(), 2);
    if (!loss)
      return signalPassFailure();
    Value documents =
        addInput(loss, "documents", loss.getArgument(0).getType());
    bool fine = true;
    loss.walk([&](AttentionOp op) {
      if (op.getTerms().getCausal())
        return op.getDocumentsMutable().assign(documents);
      emitError(analysis::ofSpec("batch.documents", op.getLoc()))
          << "attention is not causal, and would see the documents that "
             "follow; set batch.documents to \"joined\"";
      fine = false;
    });
    if (fine && documents.use_empty()) {
      emitError(analysis::ofSpec("batch.documents", loss.getLoc()))
          << "the model has no attention that documents could be separate for; "
             "set batch.documents to \"joined\"";
      fine = false;
    }
    if (!fine)
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::transform
