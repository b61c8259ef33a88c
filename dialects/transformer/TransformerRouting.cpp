// pick: the scores of what top_k chose, and their gradient; and which choices
// an expert has room for.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

/// The dims of `type` but the last.
static ArrayRef<StringAttr> rowNames(RankedTensorType type) {
  return dimsOf(type).getNames().drop_back();
}

/// Of `scores` and what is picked of them by `choices`.
static LogicalResult verifyPick(Operation *op, RankedTensorType scores,
                                RankedTensorType choices,
                                RankedTensorType picked) {
  bool haveRows = scores.getRank() > 0 && scores.getRank() == choices.getRank();
  if (haveRows && scores.getElementType().isF32() &&
      rowNames(scores) == rowNames(choices) &&
      scores.getShape().drop_back() == choices.getShape().drop_back() &&
      dimsOf(scores).find(dimsOf(choices).getNames().back()) < 0 &&
      picked == withElement(choices, scores.getElementType()))
    return success();
  return op->emitOpError()
         << "(C1) expected f32 scores [row dims..., experts], choices [row "
            "dims..., another dim] and f32 with the dims of these, found "
         << scores << ", " << choices << " and " << picked;
}

LogicalResult PickOp::verify() {
  return verifyPick(*this, tensorType(getScores()), tensorType(getChoices()),
                    tensorType(getResult()));
}
LogicalResult PickGradOp::verify() {
  return verifyPick(*this, tensorType(getResult()), tensorType(getChoices()),
                    tensorType(getGradient()));
}

/// A choice may be any of a row's experts, so these are in one place.
static SmallVector<Factor> pickFactors(Operation *op, Value scores,
                                       Value choices) {
  SmallVector<Factor> factors = factorsFromNames(op);
  for (Factor &factor : factors)
    for (Value value : {scores, choices})
      if (factor.name == dimsOf(value).getNames().back()) {
        factor.kind = Factor::whole;
        factor.isCounted = true;
      }
  return factors;
}
SmallVector<Factor> PickOp::getFactors() {
  return pickFactors(*this, getScores(), getChoices());
}
SmallVector<Factor> PickGradOp::getFactors() {
  return pickFactors(*this, getResult(), getChoices());
}

/// Weights of experts are sums of few numbers, which rounding would move.
bool PickOp::readsF32(unsigned operand) {
  return operand == getScoresMutable().getOperandNumber();
}
bool PickGradOp::readsF32(unsigned operand) {
  return operand == getGradientMutable().getOperandNumber();
}

/// Padding chooses -1, which gives zero; another choice, what is in its row.
static Padding pickPadding(Value choices, Value from, StringAttr dim,
                           PaddingOf of) {
  bool isNone = of(choices, dim).constant == -1;
  return isNone ? zeroPadding() : either(zeroPadding(), of(from, dim));
}
Padding PickOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                           function_ref<bool()>) {
  return pickPadding(getChoices(), getScores(),
                     dimsOf(getResult()).getNames()[dim], of);
}
Padding PickGradOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                               function_ref<bool()>) {
  return pickPadding(getChoices(), getGradient(),
                     dimsOf(getResult()).getNames()[dim], of);
}

FailureOr<SmallVector<Value>> PickOp::buildGradients(OpBuilder &builder,
                                                     ValueRange gradients,
                                                     ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  if (needed[0])
    result[0] = PickGradOp::create(builder, getLoc(), getScores().getType(),
                                   gradients[0], getChoices());
  return result;
}

//===-- limit_choices -------------------------------------------------------//

LogicalResult LimitChoicesOp::verify() {
  auto choices = tensorType(getChoices());
  if (choices.getRank() < 2)
    return emitOpError() << "(C1) expected choices [first dim, other token "
                            "dims..., choices], found "
                         << choices;
  auto experts = static_cast<int64_t>(getExperts()),
       most = static_cast<int64_t>(getMost()),
       group = static_cast<int64_t>(getGroup());
  if (experts >= 1 && most >= 1 && group >= 1 &&
      choices.getDimSize(0) % group == 0)
    return success();
  return emitOpError() << "(C2) leaves " << most << " choices of each of "
                       << experts << " experts in groups of " << group
                       << ", expected 1 or more of each, and a divisor of "
                       << choices.getDimSize(0);
}

/// Which choices an expert takes depends on all tokens of a group.
SmallVector<Factor> LimitChoicesOp::getFactors() {
  SmallVector<Factor> factors = factorsFromNames(*this);
  StringRef first = dimsOf(getChoices()).getNames().front();
  for (Factor &factor : factors)
    if (factor.name == first)
      factor.isCounted = true; // in groups
    else
      factor.kind = Factor::whole;
  return factors;
}
