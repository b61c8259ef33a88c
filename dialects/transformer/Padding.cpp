// Scalar arithmetic on what is known about padding. It follows the IEEE rules:
// zero times what may be infinite is not known to be zero.
#include "dialects/transformer/Transformer.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
namespace meshwork::transformer {
namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

Padding atLeast(double low) {
  Padding result = finitePadding();
  result.low = low;
  return result;
}

/// Exact where both are known; `otherwise` where one is not.
Padding folded(const Padding &a, const Padding &b,
               function_ref<double(double, double)> apply,
               const Padding &otherwise) {
  Padding result = a.constant && b.constant
                       ? constantPadding(apply(*a.constant, *b.constant))
                       : otherwise;
  result.isReal = a.isReal && b.isReal;
  result.isFinite |= result.isReal;
  return result;
}
Padding folded(const Padding &a, function_ref<double(double)> apply,
               const Padding &otherwise) {
  return folded(a, a, [&](double x, double) { return apply(x); }, otherwise);
}

/// A divisor that is real but not known is not taken for zero: the whole
/// program divides by it, too.
Padding over(const Padding &a, const Padding &b) {
  bool isSafe = b.low > 0 || b.isReal;
  Padding otherwise = anyPadding();
  if (b.isFinite && isSafe)
    otherwise = a.isZero()                ? zeroPadding()
                : b.low > 0 && a.isFinite ? finitePadding()
                                          : anyPadding();
  return folded(a, b, std::divides<double>(), otherwise);
}

Padding product(Operation *op, const Padding &a, const Padding &b) {
  Padding result = times(a, b);
  bool isSquare = op->getOperand(0) == op->getOperand(1);
  if (result.isFinite && !result.constant &&
      (isSquare || (a.low >= 0 && b.low >= 0)))
    result.low = 0;
  return result;
}

Padding difference(const Padding &a, const Padding &b) {
  return folded(a, b, std::minus<double>(),
                a.isFinite && b.isFinite ? finitePadding() : anyPadding());
}

Padding unary(Operation *op, const Padding &x) {
  Padding finite = x.isFinite ? finitePadding() : anyPadding();
  Padding root = x.isFinite && x.low >= 0 ? atLeast(0) : anyPadding();
  Padding inverseRoot = x.isFinite && x.low > 0 ? atLeast(0) : anyPadding();
  return llvm::TypeSwitch<Operation *, Padding>(op)
      .Case<arith::NegFOp>(
          [&](auto) { return folded(x, std::negate<double>(), finite); })
      .Case<arith::SIToFPOp>(
          [&](auto) { return folded(x, [](double v) { return v; }, finite); })
      .Case<math::ExpOp>([&](auto) {
        return folded(x, [](double v) { return std::exp(v); }, anyPadding());
      })
      .Case<math::LogOp>([&](auto) {
        return folded(x, [](double v) { return std::log(v); }, anyPadding());
      })
      .Case<math::TanhOp>([&](auto) {
        return folded(x, [](double v) { return std::tanh(v); }, finite);
      })
      .Case<math::ErfOp>([&](auto) {
        return folded(x, [](double v) { return std::erf(v); }, finite);
      })
      .Case<math::SqrtOp>([&](auto) {
        return folded(x, [](double v) { return std::sqrt(v); }, root);
      })
      .Case<math::RsqrtOp>([&](auto) {
        return folded(
            x, [](double v) { return 1 / std::sqrt(v); }, inverseRoot);
      })
      .Default([](Operation *) { return anyPadding(); });
}

/// Zero stays zero, the sign stays, and what is finite stays so.
Padding roundedAtRandom(const Padding &value) {
  if (value.isZero() || !value.isFinite)
    return value.isZero() ? value : anyPadding();
  return value.low >= 0 ? atLeast(0) : finitePadding();
}

/// 1 or 0 where both sides are known, as of the sign of a zero.
Padding compared(arith::CmpFOp op, const Padding &a, const Padding &b) {
  return folded(
      a, b,
      [&](double x, double y) -> double {
        return arith::applyCmpPredicate(op.getPredicate(), APFloat(x),
                                        APFloat(y));
      },
      finitePadding());
}

/// What a condition of the padding's chooses is not what the whole program
/// computes, even between two numbers that are.
Padding selected(ArrayRef<Padding> x) {
  Padding chosen = !x[0].constant        ? either(x[1], x[2])
                   : *x[0].constant != 0 ? x[1]
                                         : x[2];
  chosen.isReal &= x[0].isReal;
  return chosen;
}

Padding evaluate(Operation *op, ArrayRef<Padding> x) {
  return llvm::TypeSwitch<Operation *, Padding>(op)
      .Case([&](arith::ConstantOp constant) {
        auto number = dyn_cast<FloatAttr>(constant.getValue());
        Padding result = number ? constantPadding(number.getValueAsDouble())
                                : finitePadding();
        result.isReal = true;
        return result;
      })
      .Case<arith::AddFOp>([&](auto) { return plus(x[0], x[1]); })
      .Case<arith::SubFOp>([&](auto) { return difference(x[0], x[1]); })
      .Case<arith::MulFOp>([&](auto) { return product(op, x[0], x[1]); })
      .Case<arith::DivFOp>([&](auto) { return over(x[0], x[1]); })
      .Case<arith::SelectOp>([&](auto) { return selected(x); })
      .Case([&](arith::CmpFOp op) { return compared(op, x[0], x[1]); })
      .Case<arith::MinimumFOp, arith::MaximumFOp>(
          [&](auto) { return either(x[0], x[1]); })
      .Case<DropoutMaskOp>([&](auto) { return atLeast(0); })
      .Case([&](StochasticRoundOp) { return roundedAtRandom(x.back()); })
      .Case<IndexOp, arith::CmpIOp, arith::AddIOp, arith::SubIOp>(
          [&](auto) { return finitePadding(); })
      .Default([&](Operation *other) {
        return other->getNumOperands() == 1 ? unary(other, x[0]) : anyPadding();
      });
}
} // namespace

Padding anyPadding() { return {}; }
Padding finitePadding() { return {false, true, std::nullopt, -infinity}; }
Padding constantPadding(double value) {
  return std::isfinite(value) ? Padding{false, true, value, value}
                              : Padding{false, false, value, -infinity};
}
Padding realValue() { return {true, true, std::nullopt, -infinity}; }

Padding either(const Padding &a, const Padding &b) {
  bool same = a.constant && b.constant && *a.constant == *b.constant;
  return {a.isReal && b.isReal, a.isFinite && b.isFinite,
          same ? a.constant : std::nullopt, std::min(a.low, b.low)};
}

Padding times(const Padding &a, const Padding &b) {
  Padding otherwise = a.isFinite && b.isFinite ? finitePadding() : anyPadding();
  if (otherwise.isFinite && (a.isZero() || b.isZero()))
    otherwise = zeroPadding();
  return folded(a, b, std::multiplies<double>(), otherwise);
}

Padding plus(const Padding &a, const Padding &b) {
  return folded(a, b, std::plus<double>(),
                a.isFinite && b.isFinite ? atLeast(a.low + b.low)
                                         : anyPadding());
}

Padding sumOf(const Padding &element) {
  if (element.isZero())
    return zeroPadding();
  return !element.isFinite  ? anyPadding()
         : element.low >= 0 ? atLeast(0)
                            : finitePadding();
}

//===-- What ops need and leave ---------------------------------------------//

/// `kind` along all dims of an operand.
static void needAll(PaddingNeeds &needs, OpOperand &operand,
                    PaddingNeed::Kind kind) {
  for (StringAttr dim : dimsOf(operand.get()).getNames())
    needs.push_back({operand.getOperandNumber(), dim, kind});
}

static StringAttr dimName(Value value, unsigned dim) {
  return dimsOf(value).getNames()[dim];
}

/// What the body yields, from what its arguments have.
Padding MapOp::getPadding(unsigned result, unsigned dim, PaddingOf of,
                          function_ref<bool()>) {
  StringAttr name = dimName(getResult(result), dim);
  llvm::DenseMap<Value, Padding> known;
  Block &body = getBody().front();
  for (auto [argument, input] :
       llvm::zip_equal(body.getArguments(), getInputs()))
    known[argument] = of(input, name);
  for (Operation &op : body.without_terminator()) {
    auto operands = llvm::map_to_vector(
        op.getOperands(), [&](Value value) { return known.lookup(value); });
    known[op.getResult(0)] = evaluate(&op, operands);
  }
  return known.lookup(body.getTerminator()->getOperand(result));
}

PaddingNeeds ReduceOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  for (StringAttr dim : getDims().getNames())
    needs.push_back({0, dim,
                     getKind() == Reduction::add ? PaddingNeed::zero
                                                 : PaddingNeed::lowest});
  return needs;
}
Padding ReduceOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                             function_ref<bool()>) {
  Padding input = of(getInput(), dimName(getResult(), dim));
  return getKind() == Reduction::max ? input : sumOf(input);
}

Padding RollOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                           function_ref<bool()>) {
  return of(getInput(), dimName(getResult(), dim));
}

Padding SliceOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                            function_ref<bool()>) {
  return of(getInput(), dimName(getResult(), dim));
}

Padding UnsliceOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                              function_ref<bool()>) {
  Padding padding = zeroPadding(); // where no part lies
  for (Value value : getParts())
    padding = either(padding, of(value, dimName(getResult(), dim)));
  return padding;
}

/// A sum of products: zero on one side, finite on the other. The smaller one
/// is masked where neither is.
PaddingNeeds ContractOp::getPaddingNeeds(PaddingOf of) {
  PaddingNeeds needs;
  for (StringAttr dim : dimsOf(getLhs()).getNames()) {
    if (dimsOf(getResult()).find(dim) >= 0)
      continue;
    bool zeroLeft = of(getLhs(), dim).isZero(),
         zeroRight = of(getRhs(), dim).isZero();
    if (!zeroLeft && !zeroRight)
      zeroLeft = tensorType(getLhs()).getNumElements() <
                 tensorType(getRhs()).getNumElements();
    auto add = [&](OpOperand &operand, bool zero) {
      needs.push_back({operand.getOperandNumber(), dim,
                       zero ? PaddingNeed::zero : PaddingNeed::finite});
    };
    add(getLhsMutable(), zeroLeft);
    add(getRhsMutable(), !zeroLeft);
  }
  return needs;
}
Padding ContractOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                               function_ref<bool()>) {
  StringAttr name = dimName(getResult(), dim);
  Padding sum = sumOf(times(of(getLhs(), name), of(getRhs(), name)));
  return getBias() ? plus(sum, of(getBias(), name)) : sum;
}

PaddingNeeds EmbeddingOp::getPaddingNeeds(PaddingOf) {
  return {{0, dimName(getTable(), 0), PaddingNeed::zero}};
}
/// A negative id, which names no row, gives one of NaN.
Padding EmbeddingOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                                function_ref<bool()>) {
  StringAttr name = dimName(getResult(), dim);
  if (dimsOf(getIds()).find(name) < 0)
    return of(getTable(), name);
  std::optional<double> id = of(getIds(), name).constant;
  return id && *id < 0 ? anyPadding() : finitePadding();
}

PaddingNeeds EmbeddingGradOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  for (StringAttr dim : dimsOf(getIds()).getNames())
    needs.push_back(
        {getGradientMutable().getOperandNumber(), dim, PaddingNeed::zero});
  return needs;
}
Padding EmbeddingGradOp::getPadding(unsigned, unsigned dim, PaddingOf of,
                                    function_ref<bool()> overlaps) {
  if (dim > 0)
    return sumOf(of(getGradient(), dimName(getResult(), dim)));
  return overlaps() ? anyPadding() : zeroPadding();
}

Padding AttentionOp::getPadding(unsigned result, unsigned, PaddingOf,
                                function_ref<bool()>) {
  return result == 0 ? zeroPadding() : anyPadding(); // of rows' log-sum-exp
}

/// Probabilities of rows that are padding are zero, not absent.
PaddingNeeds AttentionGradOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  needAll(needs, getQMutable(), PaddingNeed::finite);
  needAll(needs, getGradientMutable(), PaddingNeed::finite);
  return needs;
}

PaddingNeeds HeadLossGradOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  needAll(needs, getHiddenMutable(), PaddingNeed::finite);
  needAll(needs, getWeightMutable(), PaddingNeed::finite);
  return needs;
}

PaddingNeeds AccumulateOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  needAll(needs, getValueMutable(), PaddingNeed::zero);
  return needs;
}
PaddingNeeds AssignOp::getPaddingNeeds(PaddingOf) {
  PaddingNeeds needs;
  needAll(needs, getValueMutable(), PaddingNeed::zero);
  return needs;
}

} // namespace meshwork::transformer
