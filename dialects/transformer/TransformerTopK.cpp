// top_k: what types cannot say of it, and what it tells of itself.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

/// `scores` without the experts.
static RankedTensorType rowsOf(RankedTensorType scores) {
  auto names = dimsOf(scores).getNames().drop_back();
  return namedType(scores.getShape().drop_back(),
                   DimsAttr::get(scores.getContext(), names),
                   scores.getElementType());
}

static LogicalResult verifyTypes(TopKOp op) {
  auto scores = tensorType(op.getScores()),
       choices = tensorType(op.getChoices());
  bool fits = scores.getRank() > 0 && scores.getElementType().isF32() &&
              choices.getRank() == scores.getRank();
  if (fits) {
    auto rows = rowsOf(scores);
    fits = dimsOf(scores).find(dimsOf(choices).getNames().back()) < 0 &&
           withElement(rowsOf(choices), scores.getElementType()) == rows;
  }
  if (fits)
    return success();
  return op.emitOpError() << "(C1) expected f32 scores [row dims..., experts] "
                             "and choices [row dims..., another dim], found "
                          << scores << " and " << choices;
}

static LogicalResult verifyGroups(TopKOp op, int64_t experts) {
  auto groups = static_cast<int64_t>(op.getGroups()),
       kept = static_cast<int64_t>(op.getKeptGroups());
  if (groups < 1 || experts % groups != 0)
    return op.emitOpError() << "(C2) has " << groups << " groups of " << experts
                            << " experts, expected a divisor of these";
  if (kept < 1 || kept > groups)
    return op.emitOpError()
           << "(C2) keeps " << kept << " groups, expected 1 to " << groups;
  if (op.getGroupScore() == GroupScore::two_best && experts / groups < 2)
    return op.emitOpError() << "(C2) adds the two best experts of a group, but "
                               "a group has one";
  int64_t k = tensorType(op.getChoices()).getShape().back(),
          most = kept * (experts / groups);
  if (k >= 1 && k <= most)
    return success();
  return op.emitOpError() << "(C3) makes " << k << " choices, expected 1 to "
                          << most << ", the experts of " << kept
                          << " of the groups";
}

LogicalResult TopKOp::verify() {
  if (failed(verifyTypes(*this)))
    return failure();
  auto scores = tensorType(getScores());
  if (getValid() && getValid().getType() != rowsOf(scores))
    return emitOpError() << "(C4) valid is " << getValid().getType()
                         << ", expected " << rowsOf(scores);
  int64_t experts = scores.getShape().back();
  if (ShapedType::isDynamic(experts)) // Known once the model is bound.
    return success();
  return verifyGroups(*this, experts);
}

/// A row is compared as a whole, so experts and choices are in one place.
/// Groups and choices are counts among them.
SmallVector<Factor> TopKOp::getFactors() {
  SmallVector<Factor> factors = factorsFromNames(*this);
  for (Factor &factor : factors)
    for (Value value : {Value(getScores()), Value(getChoices())})
      if (factor.name == dimsOf(value).getNames().back()) {
        factor.kind = Factor::whole;
        factor.isCounted = true;
      }
  return factors;
}

/// A choice among rounded scores would depend on the compute type.
bool TopKOp::readsF32(unsigned operand) {
  return operand == getScoresMutable().getOperandNumber();
}

Padding TopKOp::getPadding(unsigned, unsigned, PaddingOf,
                           function_ref<bool()>) {
  return constantPadding(-1);
}

void TopKOp::tellPart(RankPart &part) {
  unsigned numRowDims = tensorType(getScores()).getRank() - 1;
  Value valid = buildOwn(*this, getScores(), numRowDims, part);
  if (!valid)
    return;
  inheritFacts(*this, valid.getDefiningOp());
  getValidMutable().assign(valid);
}
