// What tensors are scaled by before they are rounded to 8 bits: one number for
// each, a power of two.
//
// Formats: Micikevicius et al., arXiv 2209.05433: e4m3 for weights and
// activations, e5m2 for gradients. The tensor's largest magnitude comes to lie
// just below the format's largest number.
//
// Delayed scaling: Micikevicius et al., too, and what NVIDIA's Transformer
// Engine calls so; there the largest of a number of steps, here of all,
// forgotten by halves, which is one number to keep.
#include "passes/transform/Scales.h"
#include "dialects/transformer/Facts.h"
#include "passes/transform/Rounding.h"
#include <cmath>

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

bool isGradient(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isBackward(op) || isa<HeadLossGradOp>(op));
}

bool isWeight(Value value) {
  return isa_and_nonnull<ParameterOp>(value.getDefiningOp());
}

namespace {
/// So many steps without a larger one, and a remembered magnitude is half.
constexpr int stepsOfHalf = 16;

/// A power of two, so that scaling rounds nothing and any device's bits are the
/// same: the largest one that keeps `amax` within the format. Both formats' end
/// is 1.75 * 2^e. NaN where `amax` is not finite, so that it is not hidden by a
/// value that FP8 can hold; the inverse is finite always.
SmallVector<Value> powersOfTwo(ImplicitLocOpBuilder &b, Value amax,
                               int64_t maxExponent) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  auto power = [&](Value biasedExponent) -> Value {
    return arith::BitcastOp::create(
        b, b.getF32Type(),
        arith::ShLIOp::create(b, biasedExponent, number(23)));
  };
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), amax);
  // Above 1.75 the sum carries into the exponent.
  Value exponent = arith::ShRUIOp::create(
      b, arith::AddIOp::create(b, bits, number(0x1fffff)), number(23));
  Value scale =
      arith::SubIOp::create(b, number(2 * 127 + maxExponent), exponent);
  scale = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, scale, number(1)),
                                 number(253));
  Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits,
                                         number(0x7f800000));
  Value nan = arith::ConstantOp::create(
      b, b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  return {arith::SelectOp::create(b, isFinite, power(scale), nan),
          power(arith::SubIOp::create(b, number(254), scale))};
}

/// With all that it is made of. Experts may stand in front of linear layers of
/// the same input, which have asked for its scale before.
void moveBefore(Operation *op, Operation *user) {
  if (!op || !user->isBeforeInBlock(op))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand.getDefiningOp(), user);
  op->moveBefore(user);
}

/// `value`, or `other` where it is 0.
Value orElse(ImplicitLocOpBuilder &b, Value value, double other) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0)),
        isZero =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, zero);
  return arith::SelectOp::create(
      b, isZero,
      arith::ConstantOp::create(b,
                                b.getF32FloatAttr(static_cast<float>(other))),
      value);
}

AssignOp normOf(Block &update) {
  for (auto assign : update.getOps<AssignOp>())
    if (assign.getKind() == StateKind::grad_norm)
      return assign;
  llvm_unreachable("QuantizePass looks");
}
} // namespace

bool Scales::isDelayed(Value value) const {
  return delayed.all && !isWeight(value);
}

int64_t Scales::ownerOf(Value value, Operation *user) const {
  return isWeight(value) && !weightsPerStep ? layerOf(user).value_or(-1) : -1;
}

void Scales::setFacts(Operation *made, Value value, Operation *user) const {
  if (isOfStep(value))
    setOfStep(made);
  else
    inheritFacts(user, made);
}

Scale Scales::of(Value value, Operation *user, StringRef weight) {
  Scale &known = scales[{value, ownerOf(value, user)}];
  if (known.scale) {
    moveBefore(known.scale.getDefiningOp(), user);
    return known;
  }
  OpBuilder::InsertionGuard guard(builder);
  if (isOfStep(value))
    builder.setInsertionPointAfterValue(value);
  else
    builder.setInsertionPoint(user);
  Value largest = magnitudeOf(value, user);
  bool isLater = isDelayed(value);
  Format format = formatOf(isGradient(value), isLater);
  if (isLater) {
    StringRef what = isGradient(value) ? "gradient" : "input";
    remember(weight, what, format, largest, user);
    largest = before(weight, what, largest.getLoc());
    builder.setInsertionPointAfterValue(largest);
  }
  Operation *powers = powersOf(largest, format);
  // Of no pass and no layer where it is known before the step.
  if (!isLater)
    setFacts(powers, value, user);
  return known = {powers->getResult(0), powers->getResult(1)};
}

Value Scales::ofRows(StringRef weight, bool areGradients) {
  Value &known = rowScales[weight];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(builder);
  Value largest = before(weight, "row", function.getLoc());
  builder.setInsertionPointAfterValue(largest);
  return known = powersOf(largest, formatOf(areGradients, /*isLater=*/true))
                     ->getResult(0);
}

void Scales::rememberRows(StringRef weight, bool areGradients, Value magnitude,
                          Operation *user) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(user);
  remember(weight, "row", formatOf(areGradients, /*isLater=*/true), magnitude,
           user);
}

Operation *Scales::powersOf(Value magnitude, const Format &format) {
  return MapOp::create(builder, magnitude.getLoc(),
                       {scalarType(), scalarType()}, magnitude,
                       [&](OpBuilder &b, mlir::Location loc, ValueRange x) {
                         ImplicitLocOpBuilder inner(loc, b);
                         return format.powers(inner, x[0]);
                       });
}

/// What nothing is known of: see README.md.
Scales::Format Scales::formatOf(bool isGradient, bool isLater) const {
  double largest = isGradient ? 57344 : 448; // 1.75 * 2^15, 1.75 * 2^8
  std::optional<double> first;
  if (isLater)
    first = largest / (isGradient ? delayed.targets : 1);
  return {isGradient ? 15 : 8, largest, first};
}

SmallVector<Value> Scales::Format::powers(ImplicitLocOpBuilder &b,
                                          Value magnitude) const {
  return powersOfTwo(b, first ? orElse(b, magnitude, *first) : magnitude,
                     maxExponent);
}

Type Scales::scalarType() {
  return RankedTensorType::get({}, builder.getF32Type());
}

Value Scales::magnitudeOf(Value value, Operation *user) {
  Value amax = largestMagnitude(builder, value);
  Operation *reduce = amax.getDefiningOp();
  for (Operation *made : {reduce->getOperand(0).getDefiningOp(), reduce})
    setFacts(made, value, user);
  return amax;
}

/// The largest magnitude of the steps before.
Value Scales::before(StringRef weight, const Twine &what, mlir::Location loc) {
  StringAttr slot = builder.getStringAttr(what + "_magnitude");
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  return StateOp::create(builder, loc, scalarType(),
                         {StateKind::optimizer, weight, slot.getValue()});
}

/// `now` is kept for the next steps.
void Scales::remember(StringRef weight, const Twine &what, const Format &format,
                      Value now, Operation *user) {
  StringAttr slot = builder.getStringAttr(what + "_magnitude"),
             slotNow = builder.getStringAttr(what + "_now");
  StateKey kept{StateKind::optimizer, weight, slot.getValue()},
      step{StateKind::magnitude, weight, slotNow.getValue()};
  auto accumulate = AccumulateOp::create(builder, now.getLoc(), step, now);
  inheritFacts(user, accumulate);
  // One for all products of the weight.
  if (slots.insert((weight + " " + what).str()).second)
    keep(format, kept, step);
}

/// At the end of the step the larger one is remembered: that of the step, or
/// the one before, which is forgotten by halves.
void Scales::keep(const Format &format, const StateKey &kept,
                  const StateKey &step) {
  Block &body = delayed.update.getBody().front();
  ImplicitLocOpBuilder b(delayed.update.getLoc(), builder.getContext());
  // Where the other states are read, whose sums over ranks begin there.
  b.setInsertionPointToStart(&body);
  Value before = StateOp::create(b, scalarType(), kept),
        now = StateOp::create(b, scalarType(), step);
  b.setInsertionPoint(normOf(body));
  saturated.push_back(buildMap(
      b, b.getLoc(), scalarType(), {before, now},
      [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
        auto number = [&](double value) -> Value {
          return arith::ConstantOp::create(
              i, i.getF32FloatAttr(static_cast<float>(value)));
        };
        Value scaled =
            arith::MulFOp::create(i, x[1], format.powers(i, x[0])[0]);
        Value isBeyond = arith::CmpFOp::create(i, arith::CmpFPredicate::OGT,
                                               scaled, number(format.largest));
        return arith::SelectOp::create(i, isBeyond, number(1), number(0));
      }));
  b.setInsertionPoint(body.getTerminator());
  // As weights wait for it: a step may end without an update.
  Value norm = normOf(body).getValue();
  Value next = buildMap(
      b, b.getLoc(), scalarType(), {before, now, norm},
      [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
        Value share = arith::ConstantOp::create(
            i, i.getF32FloatAttr(std::exp2f(-1.0f / stepsOfHalf)));
        Value larger = arith::MaximumFOp::create(
            i, arith::MulFOp::create(i, x[0], share), x[1]);
        Value zero = arith::MulFOp::create(
            i, x[2], arith::ConstantOp::create(i, i.getF32FloatAttr(0)));
        return arith::AddFOp::create(i, larger, zero);
      });
  setNotBefore(next.getDefiningOp());
  AssignOp::create(b, kept, next);
}

void Scales::finish() {
  if (saturated.empty())
    return;
  ImplicitLocOpBuilder b(delayed.update.getLoc(), builder.getContext());
  b.setInsertionPoint(normOf(delayed.update.getBody().front()));
  AssignOp::create(b, StateKey{StateKind::saturated, ""},
                   buildSum(b, saturated));
}

} // namespace meshwork::transform
