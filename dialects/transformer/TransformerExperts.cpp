// experts and their gradients: what types cannot say of them, and what they
// tell of themselves.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

//===-- Verification --------------------------------------------------------//

/// `tokens`, [token dims..., last], with another last dim.
static bool sharesTokens(RankedTensorType tokens, RankedTensorType other) {
  return tokens.getRank() == other.getRank() && tokens.getRank() > 0 &&
         tokens.getShape().drop_back() == other.getShape().drop_back() &&
         dimsOf(tokens).getNames().drop_back() ==
             dimsOf(other).getNames().drop_back();
}

template <typename Op> static LogicalResult verifyTokens(Op op) {
  auto input = tensorType(op.getInput()), choices = tensorType(op.getChoices()),
       weights = tensorType(op.getWeights());
  if (sharesTokens(input, choices) &&
      dimsOf(input).find(dimsOf(choices).getNames().back()) < 0 &&
      weights == withElement(choices, Float32Type::get(op.getContext())))
    return success();
  return op.emitOpError()
         << "(C1) expected [token dims..., embed], choices [token dims..., "
            "another dim] and f32 weights with the dims of these, found "
         << input << ", " << choices << " and " << weights;
}

/// [experts, expert_ffn, embed] and [experts, embed, expert_ffn].
static bool areProjections(RankedTensorType gate, RankedTensorType down,
                           RankedTensorType input) {
  if (gate.getRank() != 3 || down.getRank() != 3 ||
      gate.getElementType() != down.getElementType())
    return false;
  auto names = dimsOf(gate).getNames(), turned = dimsOf(down).getNames();
  auto shape = gate.getShape(), turnedShape = down.getShape();
  bool fits = true;
  constexpr unsigned places[] = {0, 2, 1};
  for (auto [i, place] : llvm::enumerate(places))
    fits &= names[i] == turned[place] && shape[i] == turnedShape[place];
  bool areOwn =
      dimsOf(input).find(names[0]) < 0 && dimsOf(input).find(names[1]) < 0;
  return fits && areOwn && names[2] == dimsOf(input).getNames().back() &&
         shape[2] == input.getShape().back();
}

static bool isNumber(Value value) {
  return tensorType(value).getRank() == 0 &&
         tensorType(value).getElementType().isF32();
}

/// `scales` are those of all kinds of rows, of which the op makes `made`.
template <typename Op>
static LogicalResult verifyRounding(Op op, size_t scales, size_t made) {
  bool isRounded = !op.getRowScales().empty();
  if (op.getRowScales().size() == (isRounded ? scales : 0) &&
      op.getRowMagnitudes().size() == (isRounded ? made : 0) &&
      llvm::all_of(op.getRowScales(), isNumber) &&
      llvm::all_of(op.getRowMagnitudes(), isNumber))
    return success();
  return op.emitOpError() << "(C6) has " << op.getRowScales().size()
                          << " scales and " << op.getRowMagnitudes().size()
                          << " magnitudes of rows, expected " << scales
                          << " and " << made << " of tensor<f32>, or none";
}

template <typename Op> static LogicalResult verifyExperts(Op op) {
  if (failed(verifyTokens(op)))
    return failure();
  auto gate = tensorType(op.getGate()), down = tensorType(op.getDown()),
       input = tensorType(op.getInput());
  if (!areProjections(gate, down, input))
    return op.emitOpError()
           << "(C2) expected gate and up [experts, expert_ffn, embed] and down "
              "[experts, embed, expert_ffn] for "
           << input << ", found " << gate << " and " << down;
  if (op.getFirstExpert() && tensorType(op.getFirstExpert()).getRank() != 0)
    return op.emitOpError()
           << "(C3) first_expert is " << op.getFirstExpert().getType()
           << ", expected tensor<i32>";
  auto experts = static_cast<uint64_t>(gate.getDimSize(0));
  if (op.getFirstExpert() ? op.getTotal() < experts : op.getTotal() != 0)
    return op.emitOpError()
           << "(C3) has " << experts << " of " << op.getTotal()
           << " experts, and " << (op.getFirstExpert() ? "a" : "no")
           << " first one";
  if (!op.getBound() ? op.getExchangeAxes().has_value()
                     : !(op.getBound()->convertToDouble() >= 1))
    return op.emitOpError() << "(C4) exchanges with " << op.getBoundAttr()
                            << ", expected a number from 1 on";
  if (op.getCapacity().value_or(1) < 1 || op.getGroup() < 1)
    return op.emitOpError()
           << "(C5) has a capacity of "
           << static_cast<int64_t>(op.getCapacity().value_or(1))
           << " in groups of " << static_cast<int64_t>(op.getGroup())
           << ", expected 1 or more of both";
  return success();
}
LogicalResult ExpertsOp::verify() {
  return failed(verifyExperts(*this)) ? failure() : verifyRounding(*this, 1, 1);
}
LogicalResult ExpertsGradOp::verify() {
  return failed(verifyExperts(*this)) ? failure() : verifyRounding(*this, 3, 2);
}

//===-- Factors -------------------------------------------------------------//

/// Tokens split freely; experts and their inner width are summed over. A
/// token's choices and its elements are in one place.
template <typename Op> static SmallVector<Factor> expertFactors(Op op) {
  auto gate = dimsOf(op.getGate()).getNames();
  StringRef choices = dimsOf(op.getChoices()).getNames().back();
  SmallVector<Factor> factors = factorsFromNames(op);
  auto magnitudes = static_cast<unsigned>(op.getRowMagnitudes().size());
  for (Factor &factor : factors) {
    factor.firstMaximum = op->getNumResults() - magnitudes;
    if (factor.name == gate[0]) {
      factor.role = Factor::experts;
      if (op.getBound())
        factor.kind = Factor::exchanged;
    }
    if (factor.name == gate[2] || factor.name == choices)
      factor.kind = Factor::whole;
    factor.isCounted = factor.name == gate[0] || factor.name == choices;
  }
  return factors;
}
SmallVector<Factor> ExpertsOp::getFactors() { return expertFactors(*this); }
SmallVector<Factor> ExpertsGradOp::getFactors() { return expertFactors(*this); }

/// Of its own tokens all choices go to some rank, and as many come back from
/// others; of gathered ones a rank has the part of its experts.
template <typename Op> static int64_t countChoices(Op op) {
  int64_t all = tensorType(op.getChoices()).getNumElements(),
          own = tensorType(op.getGate()).getDimSize(0);
  bool isPart = op.getFirstExpert() && !op.getBound();
  return isPart ? llvm::divideCeil(all * own, op.getTotal()) : all;
}
int64_t ExpertsOp::countChoices() { return ::countChoices(*this); }
int64_t ExpertsGradOp::countChoices() { return ::countChoices(*this); }

/// Of one projection of the choices that a rank has about.
template <typename Op> static uint64_t flopsOfProjection(Op op) {
  auto gate = tensorType(op.getGate());
  int64_t choices = op.countChoices();
  return 2 * static_cast<uint64_t>(choices) *
         static_cast<uint64_t>(gate.getDimSize(1) * gate.getDimSize(2));
}
uint64_t ExpertsOp::getFlops() { return 3 * flopsOfProjection(*this); }
uint64_t ExpertsGradOp::getFlops() { return 6 * flopsOfProjection(*this); }

//===-- Other answers -------------------------------------------------------//

bool ExpertsOp::readsF32(unsigned operand) {
  return operand == getWeightsMutable().getOperandNumber();
}
bool ExpertsGradOp::readsF32(unsigned operand) {
  return operand == getWeightsMutable().getOperandNumber();
}
bool ExpertsGradOp::staysF32(unsigned result) {
  return getResult(result) == getDweights();
}

/// A token of the padding chooses no expert, so that it takes no row.
template <typename Op> static PaddingNeeds needsOfTokens(Op op) {
  PaddingNeeds needs;
  auto numberOf = [&](Value value) {
    return static_cast<unsigned>(llvm::find(op->getOperands(), value) -
                                 op->operand_begin());
  };
  for (StringAttr dim : dimsOf(op.getChoices()).getNames().drop_back())
    needs.push_back({numberOf(op.getChoices()), dim, PaddingNeed::negative});
  // Of a width that ranks share unevenly; what stands behind its end is then
  // added to no sum.
  StringAttr width = dimsOf(op.getGate()).getNames()[1];
  for (Value value : {op.getGate(), op.getUp(), op.getDown()})
    needs.push_back({numberOf(value), width, PaddingNeed::zero});
  return needs;
}
PaddingNeeds ExpertsOp::getPaddingNeeds(PaddingOf) {
  return needsOfTokens(*this);
}
PaddingNeeds ExpertsGradOp::getPaddingNeeds(PaddingOf) {
  return needsOfTokens(*this);
}

template <typename Op> static void countExperts(Op op, RankPart &part) {
  if (!part.isSplit(op.getGate(), 0))
    return (void)op.removeBoundAttr(); // All are here.
  op.setTotal(static_cast<uint64_t>(tensorType(op.getGate()).getDimSize(0)));
  op.getFirstExpertMutable().assign(part.first(op.getGate(), 0));
  if (op.getBound())
    op.setExchangeAxesAttr(part.axesOf(op.getGate(), 0));
}
void ExpertsOp::tellPart(RankPart &part) { countExperts(*this, part); }
void ExpertsGradOp::tellPart(RankPart &part) { countExperts(*this, part); }

FailureOr<SmallVector<Value>> ExpertsOp::buildGradients(OpBuilder &builder,
                                                        ValueRange gradients,
                                                        ArrayRef<bool> needed) {
  auto grad = ExpertsGradOp::create(
      builder, getLoc(), getInput().getType(), getWeights().getType(),
      getGate().getType(), getUp().getType(), getDown().getType(), TypeRange(),
      getFunctionAttr(), getInput(), getChoices(), getWeights(), getGate(),
      getUp(), getDown(), gradients[0], getFirstExpert(), getTotalAttr(),
      getBoundAttr(), getExchangeAxesAttr(), getCapacityAttr(), getGroupAttr(),
      /*rowScales=*/ValueRange());
  SmallVector<Value> result(getNumOperands());
  result[0] = grad.getDinput();
  result[2] = grad.getDweights();
  result[3] = grad.getDgate();
  result[4] = grad.getDup();
  result[5] = grad.getDdown();
  return result;
}
