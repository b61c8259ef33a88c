// head_loss and its gradient: one token's logits at a time.
#include "lib/Interpreter/Evaluate.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// The logits of token `t`, turned into log-probabilities.
std::vector<double> logProbabilities(const Tensor &hidden, const Tensor &weight,
                                     int64_t t) {
  int64_t vocab = weight.getDimSize(0), embed = weight.getDimSize(1);
  std::vector<double> logits(vocab, 0.0);
  for (int64_t w = 0; w < vocab; ++w)
    for (int64_t e = 0; e < embed; ++e)
      logits[w] += hidden[t * embed + e] * weight[w * embed + e];
  double largest = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (double logit : logits)
    sum += std::exp(logit - largest);
  for (double &logit : logits)
    logit -= largest + std::log(sum);
  return logits;
}

LogicalResult checkTargets(Operation *op, const Tensor &targets,
                           int64_t vocab) {
  for (double target : targets.getElements())
    if (target < 0 || target >= static_cast<double>(vocab))
      return op->emitOpError("target ")
             << target << " is outside the vocabulary of " << vocab;
  return success();
}
} // namespace

Results evaluate(HeadLossOp op, ArrayRef<Tensor> operands) {
  const Tensor &hidden = operands[0], &weight = operands[1],
               &targets = operands[2];
  if (failed(checkTargets(op, targets, weight.getDimSize(0))))
    return failure();
  double loss = 0;
  for (int64_t t = 0; t < targets.size(); ++t)
    loss -=
        logProbabilities(hidden, weight, t)[static_cast<size_t>(targets[t])];
  return Tensors{Tensor::scalar(op.getScale().convertToDouble() * loss)};
}

// d loss / d logit = scale (probability - 1 at the target).
Results evaluate(HeadLossGradOp op, ArrayRef<Tensor> operands) {
  const Tensor &hidden = operands[0], &weight = operands[1],
               &targets = operands[2];
  int64_t vocab = weight.getDimSize(0), embed = weight.getDimSize(1);
  if (failed(checkTargets(op, targets, vocab)))
    return failure();
  double scale = op.getScale().convertToDouble(), loss = 0;
  Tensor dhidden = Tensor::zeros(op.getDhidden().getType());
  Tensor dweight = Tensor::zeros(op.getDweight().getType());
  for (int64_t t = 0; t < targets.size(); ++t) {
    std::vector<double> logs = logProbabilities(hidden, weight, t);
    auto target = static_cast<int64_t>(targets[t]);
    loss -= logs[target];
    for (int64_t w = 0; w < vocab; ++w) {
      double dlogit = scale * (std::exp(logs[w]) - (w == target ? 1 : 0));
      for (int64_t e = 0; e < embed; ++e) {
        dhidden[t * embed + e] += dlogit * weight[w * embed + e];
        dweight[w * embed + e] += dlogit * hidden[t * embed + e];
      }
    }
  }
  return Tensors{Tensor::scalar(scale * loss), dhidden, dweight};
}

} // namespace meshwork::interpreter
