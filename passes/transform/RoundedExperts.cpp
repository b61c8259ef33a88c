#include "passes/transform/RoundedExperts.h"

#include "dialects/transformer/Facts.h"
#include "passes/transform/Rounding.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

namespace {
StringRef nameOf(Value weight) {
  return weight.getDefiningOp<ParameterOp>().getName();
}

template <typename Op> bool haveParameters(Op op) {
  return isWeight(op.getGate()) && isWeight(op.getUp()) &&
         isWeight(op.getDown());
}

/// Rows that an op makes: the weight that multiplies them.
struct Rows {
  std::string weight;
  bool areGradients;
};
} // namespace

bool RoundedExperts::areIn(func::FuncOp microbatch) {
  return llvm::any_of(microbatch.getOps<ExpertsOp>(),
                      [](ExpertsOp op) { return haveParameters(op); });
}

void RoundedExperts::run() {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto experts = dyn_cast<ExpertsOp>(op))
      round(experts);
    else if (auto grad = dyn_cast<ExpertsGradOp>(op))
      round(grad);
  }
}

template <typename Op> void RoundedExperts::round(Op op) {
  if (!haveParameters(op))
    return;
  constexpr bool isBackward = std::is_same_v<Op, ExpertsGradOp>;
  std::string gate = nameOf(op.getGate()).str(), up = nameOf(op.getUp()).str(),
              down = nameOf(op.getDown()).str();
  roundOperand(op.getInputMutable(), gate);
  roundOperand(op.getGateMutable(), gate);
  roundOperand(op.getUpMutable(), up);
  roundOperand(op.getDownMutable(), down);
  SmallVector<Value> rowScales = {scales.ofRows(down, false)};
  SmallVector<Rows> made = {{down, false}};
  if constexpr (isBackward) {
    roundOperand(op.getGradientMutable(), down);
    made = {{gate, true}, {up, true}};
    for (const Rows &rows : made)
      rowScales.push_back(scales.ofRows(rows.weight, rows.areGradients));
  }
  Op scaled = withScales(op, rowScales);
  for (auto [rows, magnitude] :
       llvm::zip_equal(made, scaled.getRowMagnitudes()))
    scales.rememberRows(rows.weight, rows.areGradients, magnitude, scaled);
}

/// The op with these, and a magnitude for each kind of rows that it makes.
template <typename Op>
Op RoundedExperts::withScales(Op op, ValueRange rowScales) {
  builder.setInsertionPoint(op);
  SmallVector<Type> types(op->getResultTypes());
  constexpr bool isBackward = std::is_same_v<Op, ExpertsGradOp>;
  types.append(isBackward ? 2 : 1, rowScales.front().getType());
  auto scaled = Op::create(builder, op.getLoc(), types, op->getOperands(),
                           op->getAttrs());
  scaled.getRowScalesMutable().assign(rowScales);
  for (auto [before, now] : llvm::zip(op->getResults(), scaled->getResults()))
    before.replaceAllUsesWith(now);
  op->erase();
  return scaled;
}

void RoundedExperts::roundOperand(OpOperand &operand, StringRef weight) {
  operand.set(rounded(operand.get(), operand.getOwner(), weight));
}

Value RoundedExperts::rounded(Value value, Operation *user, StringRef weight) {
  Value &known =
      copies[{value.getAsOpaquePointer(), scales.ownerOf(value, user)}];
  if (known)
    return known;
  Scale scale = scales.of(value, user, weight);
  Type format = isGradient(value) ? Type(builder.getType<Float8E5M2Type>())
                                  : Type(builder.getType<Float8E4M3FNType>());
  builder.setInsertionPoint(user);
  if (scales.isOfStep(value))
    builder.setInsertionPointAfterValue(scale.scale);
  Value of8 = scaledTo8(builder, value, scale.scale, format,
                        scales.isDelayed(value) ? Infinity::becomesNan
                                                : Infinity::isInScale);
  scales.setFacts(of8.getDefiningOp(), value, user);
  builder.setInsertionPoint(user);
  known = scaledBack(builder, of8, scale.inverse,
                     tensorType(value).getElementType());
  inheritFacts(user, known.getDefiningOp());
  // Else all weights would be there once more from the start.
  if (!scales.isOfStep(value) && !scales.isDelayed(value))
    setNotBefore(of8.getDefiningOp());
  if (isWeight(value))
    setNotBefore(known.getDefiningOp());
  return known;
}

} // namespace meshwork::transform
