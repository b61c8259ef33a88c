// The gradient of map: reverse-mode differentiation of its scalar body. The
// gradient map computes the body again from the same operands, so nothing of
// the forward pass is kept for it; fusion decides what is worth keeping.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace {
/// Builds adjoints of one body at `b`. `mapping` takes the body's values to
/// their clones; `adjoints` to their gradients so far.
class BodyAdjoint {
public:
  BodyAdjoint(ImplicitLocOpBuilder &b, IRMapping &mapping)
      : b(b), mapping(mapping) {}

  void add(Value value, Value gradient) {
    Value &sum = adjoints[value];
    sum = sum ? arith::AddFOp::create(b, sum, gradient) : gradient;
  }
  Value get(Value value) const { return adjoints.lookup(value); }
  LogicalResult visit(Operation *op);

private:
  Value clone(Value value) { return mapping.lookupOrDefault(value); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, x); }
  Value number(double value) {
    return arith::ConstantOp::create(
        b, b.getF32FloatAttr(static_cast<float>(value)));
  }

  LogicalResult visitBinary(Operation *op, Value g);
  LogicalResult visitUnary(Operation *op, Value g);

  ImplicitLocOpBuilder &b;
  IRMapping &mapping;
  DenseMap<Value, Value> adjoints;
};

LogicalResult BodyAdjoint::visit(Operation *op) {
  if (isa<arith::ConstantOp, IndexOp, DropoutMaskOp, arith::CmpFOp,
          arith::CmpIOp, arith::SIToFPOp>(op))
    return success(); // Piecewise constant.
  Value g = op->getNumResults() == 1 ? get(op->getResult(0)) : Value();
  if (!g)
    return success();
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value condition = clone(select.getCondition()), zero = number(0);
    add(select.getTrueValue(), arith::SelectOp::create(b, condition, g, zero));
    add(select.getFalseValue(), arith::SelectOp::create(b, condition, zero, g));
    return success();
  }
  return op->getNumOperands() == 2 ? visitBinary(op, g) : visitUnary(op, g);
}

LogicalResult BodyAdjoint::visitBinary(Operation *op, Value g) {
  Value x = op->getOperand(0), y = op->getOperand(1);
  if (isa<arith::AddFOp>(op)) {
    add(x, g);
    add(y, g);
  } else if (isa<arith::SubFOp>(op)) {
    add(x, g);
    add(y, neg(g));
  } else if (isa<arith::MulFOp>(op)) {
    add(x, mul(g, clone(y)));
    add(y, mul(g, clone(x)));
  } else if (isa<arith::DivFOp>(op)) {
    Value overY = div(g, clone(y));
    add(x, overY);
    add(y, neg(mul(overY, clone(op->getResult(0)))));
  } else {
    return op->emitOpError("has no gradient rule in a map body");
  }
  return success();
}

LogicalResult BodyAdjoint::visitUnary(Operation *op, Value g) {
  Value x = op->getOperand(0), y = clone(op->getResult(0));
  if (isa<arith::NegFOp>(op))
    add(x, neg(g));
  else if (isa<math::ExpOp>(op))
    add(x, mul(g, y));
  else if (isa<math::LogOp>(op))
    add(x, div(g, clone(x)));
  else if (isa<math::TanhOp>(op))
    add(x, mul(g, sub(number(1), mul(y, y))));
  else if (isa<math::SqrtOp>(op))
    add(x, div(mul(g, number(0.5)), y));
  else if (isa<math::RsqrtOp>(op)) // -1/2 x^(-3/2); y^3 may leave f32's range
    add(x, mul(mul(mul(g, number(-0.5)), y), mul(y, y)));
  else if (isa<math::ErfOp>(op)) // 2 / sqrt(pi) exp(-x^2)
    add(x, mul(g, mul(number(1.1283791670955126),
                      math::ExpOp::create(b, neg(mul(clone(x), clone(x)))))));
  else
    return op->emitOpError("has no gradient rule in a map body");
  return success();
}
} // namespace

FailureOr<SmallVector<Value>> MapOp::buildGradients(OpBuilder &builder,
                                                    ValueRange gradients,
                                                    ArrayRef<bool> needed) {
  auto space = tensorType(getResult(0));
  // Operands of the gradient map: this map's, then the gradients there are.
  SmallVector<Value> operands(getInputs());
  SmallVector<int64_t> gradientPlace(getNumResults(), -1);
  for (auto [i, gradient] : llvm::enumerate(gradients))
    if (gradient) {
      gradientPlace[i] = operands.size();
      operands.push_back(gradient);
    }
  SmallVector<unsigned> wanted;
  for (unsigned i = 0; i < getInputs().size(); ++i)
    if (needed[i])
      wanted.push_back(i);
  SmallVector<Value> result(getInputs().size());
  if (wanted.empty())
    return result;

  Block &body = getBody().front();
  SmallVector<Type> types = llvm::map_to_vector(wanted, [&](unsigned) -> Type {
    return withElement(space, tensorType(getResult(0)).getElementType());
  });
  LogicalResult status = success();
  auto build = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    ImplicitLocOpBuilder inner(loc, b);
    IRMapping mapping;
    mapping.map(body.getArguments(),
                arguments.take_front(body.getNumArguments()));
    for (Operation &op : body.without_terminator())
      inner.clone(op, mapping);
    BodyAdjoint adjoint(inner, mapping);
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      if (gradientPlace[i] >= 0)
        adjoint.add(value, arguments[gradientPlace[i]]);
    for (Operation &op : llvm::reverse(body.without_terminator()))
      if (failed(adjoint.visit(&op)))
        status = failure();
    Value zero;
    return llvm::map_to_vector(wanted, [&](unsigned i) -> Value {
      if (Value gradient = adjoint.get(body.getArgument(i)))
        return gradient;
      if (!zero)
        zero = arith::ConstantOp::create(inner, inner.getF32FloatAttr(0));
      return zero;
    });
  };
  auto map = MapOp::create(builder, getLoc(), types, operands, build);
  if (failed(status))
    return failure();
  Operation *yield = map.getBody().front().getTerminator();
  for (auto [i, operand] : llvm::enumerate(wanted)) {
    // A gradient passed on unchanged needs no map.
    Value gradient = map.getResult(i);
    auto argument = dyn_cast<BlockArgument>(yield->getOperand(i));
    if (argument && map.getInputs()[argument.getArgNumber()].getType() ==
                        gradient.getType())
      gradient = map.getInputs()[argument.getArgNumber()];
    Value reduced =
        reduceTo(builder, getLoc(), gradient, tensorType(getInputs()[operand]));
    result[operand] = reduced;
  }
  return result;
}
