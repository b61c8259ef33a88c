// head_loss and its gradient: one token's logits at a time.
#include "passes/interpreter/Collectives.h"
#include "passes/interpreter/Evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// As in kernels, where it is an f32; 0: none.
template <typename Op> double capOf(Op op) {
  return static_cast<float>(op.getCap().convertToDouble());
}

/// The logit of token `t` and row `w`.
double logit(const Tensor &hidden, const Tensor &weight, int64_t t, int64_t w,
             double cap) {
  double sum = 0;
  for (int64_t e = 0, embed = weight.getDimSize(1); e < embed; ++e)
    sum += hidden[t * embed + e] * weight[w * embed + e];
  return cap > 0 ? cap * std::tanh(sum / cap) : sum;
}

/// -1 is no target, where the op counts those that are.
template <typename Op>
LogicalResult checkTargets(Op op, const Tensor &targets, int64_t vocab) {
  for (double target : targets.getElements())
    if (target < (op.getCounted() ? -1 : 0) ||
        target >= static_cast<double>(vocab))
      return op->emitOpError("target ")
             << target << " is outside the vocabulary of " << vocab;
  return success();
}

/// What a group of ranks, or one rank, knows about a token: the logarithm of
/// the sum of exponentials and the logit of its target.
struct TokenSums {
  double logOfSum, targetLogit;
};

/// One rank's rows of the weight: where they begin and how many are tokens.
struct Rows {
  int64_t begin, count;
};
Rows rowsOf(HeadLossGradOp op, const Tensors &operands) {
  int64_t all = operands[1].getDimSize(0);
  if (!op.getFirstRow())
    return {0, all};
  auto begin = static_cast<int64_t>(operands[3][0]);
  return {begin, op.getRows() ? static_cast<int64_t>(operands[4][0]) : all};
}

/// What the loss of a token is multiplied with; `counted` is the last operand.
template <typename Op> double scaleOf(Op op, ArrayRef<Tensor> operands) {
  double scale = op.getScale().convertToDouble();
  return op.getCounted() ? scale / std::max(1.0, operands.back()[0]) : scale;
}

/// Whether token `t` is one of the batch and has a target.
bool isToken(HeadLossGradOp op, const Tensors &operands, int64_t t) {
  size_t valid = operands.size() - (op.getCounted() ? 2 : 1);
  return operands[2][t] >= 0 && (!op.getValid() || operands[valid][t] > 0);
}

TokenSums combine(HeadLossGradOp op, ArrayRef<Tensors> ranks, int64_t t) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  TokenSums result{0, 0};
  auto forEachLogit = [&](function_ref<void(double, int64_t)> visit) {
    for (const Tensors &x : ranks)
      for (int64_t w = 0, n = rowsOf(op, x).count; w < n; ++w)
        visit(logit(x[0], x[1], t, w, capOf(op)), rowsOf(op, x).begin + w);
  };
  forEachLogit(
      [&](double value, int64_t) { largest = std::max(largest, value); });
  auto target = static_cast<int64_t>(ranks[0][2][t]);
  forEachLogit([&](double value, int64_t token) {
    sum += std::exp(value - largest);
    if (token == target)
      result.targetLogit += value;
  });
  result.logOfSum = largest + std::log(sum);
  return result;
}

/// d loss / d logit = scale (probability - 1 at the target), over own rows,
/// times 1 - (logit / cap)^2 where logits have a cap.
void addGradients(HeadLossGradOp op, const Tensors &x, int64_t t,
                  TokenSums token, Tensors &results) {
  double scale = scaleOf(op, x), cap = capOf(op);
  int64_t embed = x[1].getDimSize(1);
  Rows rows = rowsOf(op, x);
  auto target = static_cast<int64_t>(x[2][t]);
  for (int64_t w = 0; w < rows.count; ++w) {
    double value = logit(x[0], x[1], t, w, cap);
    double probability = std::exp(value - token.logOfSum);
    double share = cap > 0 ? value / cap : 0;
    double gradient = scale * (1 - share * share) *
                      (probability - (rows.begin + w == target ? 1 : 0));
    for (int64_t e = 0; e < embed; ++e) {
      results[1][t * embed + e] += gradient * x[1][w * embed + e];
      results[2][w * embed + e] += gradient * x[0][t * embed + e];
    }
  }
  results[0][0] += scale * (token.logOfSum - token.targetLogit);
}
} // namespace

static Results evaluate(HeadLossOp op, ArrayRef<Tensor> operands) {
  const Tensor &hidden = operands[0], &weight = operands[1],
               &targets = operands[2];
  int64_t vocab = weight.getDimSize(0);
  if (failed(checkTargets(op, targets, vocab)))
    return failure();
  double loss = 0;
  for (int64_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0)
      continue;
    std::vector<double> logits;
    for (int64_t w = 0; w < vocab; ++w)
      logits.push_back(logit(hidden, weight, t, w, capOf(op)));
    double largest = *std::max_element(logits.begin(), logits.end()), sum = 0;
    for (double value : logits)
      sum += std::exp(value - largest);
    loss += largest + std::log(sum) - logits[static_cast<size_t>(targets[t])];
  }
  return Tensors{Tensor::scalar(scaleOf(op, operands) * loss)};
}

FailureOr<std::vector<Tensors>> evaluateHead(HeadLossGradOp op,
                                             ArrayRef<Tensors> operands) {
  int64_t vocab = op.getFirstRow() ? static_cast<int64_t>(op.getVocabulary())
                                   : operands[0][1].getDimSize(0);
  const Tensor &targets = operands[0][2];
  if (failed(checkTargets(op, targets, vocab)))
    return failure();
  Tensors zeros = {Tensor::zeros(op.getLoss().getType()),
                   Tensor::zeros(op.getDhidden().getType()),
                   Tensor::zeros(op.getDweight().getType())};
  std::vector<Tensors> results(operands.size(), zeros);
  for (int64_t t = 0; t < targets.size(); ++t) {
    if (!isToken(op, operands[0], t))
      continue;
    TokenSums token = combine(op, operands, t);
    for (auto [x, result] : llvm::zip_equal(operands, results))
      addGradients(op, x, t, token, result);
  }
  return results;
}

static Results evaluate(HeadLossGradOp op, ArrayRef<Tensor> operands) {
  FailureOr<std::vector<Tensors>> results =
      evaluateHead(op, Tensors(operands.begin(), operands.end()));
  if (failed(results))
    return failure();
  return results->front();
}

void addHeadLoss(Evaluators &to) {
  to.add<HeadLossOp>(evaluate);
  to.add<HeadLossGradOp>(evaluate);
}

} // namespace meshwork::interpreter
