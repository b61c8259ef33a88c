// Gradients of experts' weights that need not wait for further rounds.
#include "dialects/transformer/Facts.h"
#include "passes/pipeline/Cut.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

static auto weightsOf(ExpertRoundsOp op) {
  return op.getResults().slice(ExpertRoundsOp::firstOfWeights,
                               ExpertRoundsOp::countOfWeights);
}

static bool canBeApart(ExpertRoundsOp op) {
  return op.getGradient() && !op.getApart() &&
         llvm::all_of(weightsOf(op), [](Value weights) {
           return !weights.use_empty() &&
                  llvm::all_of(weights.getUsers(), llvm::IsaPred<AccumulateOp>);
         });
}

static void accumulateFirst(ExpertRoundsOp op, OpResult weights) {
  OpBuilder builder(op);
  IRMapping first;
  first.map(weights, op.sumOf(weights.getResultNumber()));
  for (Operation *accumulation : weights.getUsers())
    builder.clone(*accumulation, first);
}

void keepRoundsApart(func::FuncOp microbatch) {
  for (auto op : microbatch.getOps<ExpertRoundsOp>()) {
    if (!canBeApart(op))
      continue;
    for (OpResult weights : weightsOf(op))
      accumulateFirst(op, weights);
    op.getSumsMutable().erase(ExpertRoundsOp::firstOfWeights,
                              ExpertRoundsOp::countOfWeights);
    op.setApart(true);
  }
}

} // namespace meshwork::pipeline
