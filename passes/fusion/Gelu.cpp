// The gradient is what autodiff and canonicalization leave of it, some twenty
// ops in no order to rely on. So a body is known by what it computes: it may
// hold sums, products, quotients, upper bounds and tanh only, and agrees with
// the function wherever it is asked. Such an expression that did so and were
// another one would have as many roots.
#include "passes/fusion/Gelu.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::fusion {
namespace {
constexpr double scale = 0.79788456080286536, cube = 0.044715;
/// Of f32 constants that stand for the two above.
constexpr double tolerance = 1e-6;

/// From -6 to 6, and beyond, where the function is x or 0 to the last bit of
/// f32.
SmallVector<double> points() {
  SmallVector<double> all;
  for (double x = -6; x < 6; x += 0.17)
    all.push_back(x);
  for (double x : {8.0, 12.0, 40.0, 1e4, 1e15, 1e30})
    all.append({x, -x});
  return all;
}

double gelu(double x) {
  return x / 2 * (1 + std::tanh(scale * (x + cube * x * x * x)));
}

double geluGradient(double x) {
  double t = std::tanh(scale * (x + cube * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * cube * x * x);
}

using Operands = llvm::function_ref<double(unsigned)>;
std::optional<double> compare(arith::CmpFOp op, Operands x) {
  if (op.getPredicate() == arith::CmpFPredicate::OGT)
    return x(0) > x(1);
  return std::nullopt;
}

/// The body's result for these arguments; none where it holds another op.
std::optional<double> evaluate(Block &body, ArrayRef<double> arguments) {
  DenseMap<Value, double> values;
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    values[argument] = value;
  for (Operation &op : body.without_terminator()) {
    auto x = [&](unsigned i) { return values.lookup(op.getOperand(i)); };
    auto number = llvm::TypeSwitch<Operation *, std::optional<double>>(&op)
                      .Case([](arith::ConstantOp c) -> std::optional<double> {
                        auto value = dyn_cast<FloatAttr>(c.getValue());
                        return value ? std::optional(value.getValueAsDouble())
                                     : std::nullopt;
                      })
                      .Case([&](arith::AddFOp) { return x(0) + x(1); })
                      .Case([&](arith::SubFOp) { return x(0) - x(1); })
                      .Case([&](arith::MulFOp) { return x(0) * x(1); })
                      .Case([&](arith::DivFOp) { return x(0) / x(1); })
                      .Case([&](arith::NegFOp) { return -x(0); })
                      .Case([&](math::TanhOp) { return std::tanh(x(0)); })
                      .Case([&](arith::CmpFOp op) { return compare(op, x); })
                      .Case([&](arith::SelectOp) { return x(0) ? x(1) : x(2); })
                      .Default([](Operation *) { return std::nullopt; });
    if (!number)
      return std::nullopt;
    values[op.getResult(0)] = *number;
  }
  Value yielded = body.getTerminator()->getOperand(0);
  auto known = values.find(yielded);
  return known == values.end() ? std::nullopt : std::optional(known->second);
}

bool isFunction(MapOp map, unsigned numInputs) {
  auto allAlike = llvm::all_of(map.getInputs(), [&](Value input) {
    return tensorType(input).getShape() ==
               tensorType(map.getResult(0)).getShape() &&
           dimsOf(input) == dimsOf(map.getResult(0));
  });
  return map.getInputs().size() == numInputs && map.getNumResults() == 1 &&
         allAlike;
}

bool isNear(std::optional<double> found, double expected) {
  return found &&
         std::abs(*found - expected) <= tolerance * (1 + std::abs(expected));
}
} // namespace

bool isGelu(MapOp map) {
  if (!isFunction(map, 1))
    return false;
  Block &body = map.getBody().front();
  return llvm::all_of(
      points(), [&](double x) { return isNear(evaluate(body, {x}), gelu(x)); });
}

std::optional<unsigned> inputOfGeluGradient(MapOp map) {
  if (!isFunction(map, 2))
    return std::nullopt;
  Block &body = map.getBody().front();
  for (unsigned input : {0u, 1u}) {
    auto agrees = [&](double x, double gradient) {
      double arguments[2];
      arguments[input] = x;
      arguments[1 - input] = gradient;
      return isNear(evaluate(body, arguments), gradient * geluGradient(x));
    };
    if (llvm::all_of(points(), [&](double x) {
          return agrees(x, 1) && agrees(x, -0.625);
        }))
      return input;
  }
  return std::nullopt;
}

} // namespace meshwork::fusion
