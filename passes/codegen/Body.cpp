// Values of BodyEmitter: what is kept for a row, draws, reductions within a
// walk.
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

Emitted BodyEmitter::eval(Value value, int64_t rotation) {
  if (auto known = values.find({value, rotation}); known != values.end())
    return known->second;
  Emitted result = compute(value, rotation);
  return values[{value, rotation}] = result;
}

/// An op of a map's body; one that is kept is computed in the first pass only.
/// One that turns out to be the same for the whole row is at hand anyway.
Emitted BodyEmitter::computeInBody(Operation *op, int64_t rotation) {
  Kept *kept = keptValues.lookup(op->getResult(0));
  if (kept && kept->pass && *kept->pass < pass)
    return load(kept->access, rotation);
  Emitted result = computeOver(op, rotation);
  if (kept && isa<VectorType>(result.value.getType()) &&
      result.scope + 1 == scopes.size()) {
    store(kept->access, result.value);
    kept->pass = pass;
  }
  return result;
}

void BodyEmitter::define(Value reduction, Value value) {
  values[{reduction, 0}] = {value, static_cast<unsigned>(scopes.size() - 1)};
}

/// Multiplications and additions may become one rounding; nothing else moves.
void BodyEmitter::relax(Operation *made, Operation * /*op*/) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(made))
    made->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(
                      made->getContext(), arith::FastMathFlags::contract));
}

Value BodyEmitter::inverseOf(OpBuilder &b, Value divisor) {
  Value one = arith::ConstantOp::create(b, loc(), b.getF32FloatAttr(1));
  return arith::DivFOp::create(b, loc(), one, divisor);
}

Value BodyEmitter::drawWord(OpBuilder &b, Value positions, Value seed,
                            Value step, Value stream) {
  Type words = typeLike(positions.getType(), b.getI32Type());
  auto spread = [&](Value value) {
    return isa<VectorType>(words) ? splat(b, value) : value;
  };
  Value shift = constantOf(b, loc(), positions.getType(), 32);
  Value low = arith::TruncIOp::create(b, loc(), words, positions);
  Value high = arith::TruncIOp::create(
      b, loc(), words, arith::ShRUIOp::create(b, loc(), positions, shift));
  return philoxWord(b, loc(),
                    {low, high, spread(step), constantOf(b, loc(), words, 0)},
                    {spread(seed), spread(stream)});
}

/// The outermost scope that knows all that `value` depends on, loops of
/// vertical reductions aside.
unsigned BodyEmitter::scopeOf(Value value) {
  if (auto known = values.find({value, 0}); known != values.end())
    return known->second.scope;
  unsigned scope = 0;
  Operation *def = value.getDefiningOp();
  if (!def)
    for (auto &[key, stride] :
         walk.inputs[cast<BlockArgument>(value).getArgNumber()].strides)
      scope = std::max(scope, scopeOf(key));
  else
    for (Value operand : def->getOperands())
      scope = std::max(scope, scopeOf(operand));
  if (auto map = dyn_cast_or_null<MapOp>(def))
    map.getBody().walk([&](Operation *inner) {
      if (auto index = dyn_cast<IndexOp>(inner))
        scope = std::max(scope, scopeOf(index.getDimAttr()));
      if (isa<DrawOpInterface>(inner))
        scope = scopes.size() - 1;
    });
  return scope;
}

Emitted BodyEmitter::evalVertical(ReduceOp reduce) {
  unsigned scope = scopeOf(reduce.getInput());
  SmallVector<Scope, 0> inner(
      std::make_move_iterator(scopes.begin() + scope + 1),
      std::make_move_iterator(scopes.end()));
  scopes.erase(scopes.begin() + scope + 1, scopes.end());
  auto input = tensorType(reduce.getInput());
  bool isVector =
      walk.vectorKey() && llvm::any_of(scopes[scope].positions, [&](auto &p) {
        return p.first == walk.vectorKey();
      });
  bool isMax = reduce.getKind() == Reduction::max;
  Value start = identity(builder(), isMax, isVector);
  SmallVector<StringAttr> dims;
  for (StringAttr name : dimsOf(input).getNames())
    if (reduce.getDims().find(name) >= 0 &&
        input.getDimSize(dimsOf(input).find(name)) != 1)
      dims.push_back(name);
  auto nest = [&](auto &self, ArrayRef<StringAttr> left,
                  Value carried) -> Value {
    if (left.empty()) {
      Value part = eval(reduce.getInput()).value;
      return combine(builder(), isMax, carried, isVector ? splat(part) : part);
    }
    int64_t size = input.getDimSize(dimsOf(input).find(left.front()));
    return loop(number(0), number(size), 1, carried,
                [&](Value position, ValueRange values) -> Values {
                  bind(left.front(), position);
                  return {self(self, left.drop_front(), values[0])};
                })[0];
  };
  Emitted result{nest(nest, dims, start), scope};
  scopes.append(std::make_move_iterator(inner.begin()),
                std::make_move_iterator(inner.end()));
  return result;
}

Value BodyEmitter::identity(OpBuilder &b, bool isMax, bool isVector) {
  float value = isMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  Value scalar = arith::ConstantOp::create(b, loc(), b.getF32FloatAttr(value));
  return isVector ? splat(b, scalar) : scalar;
}

/// A maximum as the machine's own instruction has it: a NaN does not replace
/// what was found so far (the exponentials that follow bring it out).
Value BodyEmitter::combine(OpBuilder &b, bool isMax, Value soFar, Value next) {
  if (!isMax)
    return arith::AddFOp::create(b, loc(), soFar, next);
  Value isLarger =
      arith::CmpFOp::create(b, loc(), arith::CmpFPredicate::OGT, next, soFar);
  return arith::SelectOp::create(b, loc(), isLarger, next, soFar);
}

} // namespace meshwork::codegen
