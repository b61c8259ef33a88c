// Values of BodyEmitter: operands, maps, rolls, reductions within a walk.
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

Emitted BodyEmitter::compute(Value value, int64_t rotation) {
  Operation *def = value.getDefiningOp();
  if (!def) {
    auto argument = cast<BlockArgument>(value);
    if (auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp()))
      return eval(map.getInputs()[argument.getArgNumber()], rotation);
    return load(walk.inputs[argument.getArgNumber()], rotation);
  }
  if (auto map = dyn_cast<MapOp>(def))
    return eval(map.getBody().front().getTerminator()->getOperand(
                    cast<OpResult>(value).getResultNumber()),
                rotation);
  if (auto roll = dyn_cast<RollOp>(def))
    return eval(roll.getInput(),
                roll.getShift()
                    ? (rotation + roll.getShift()) % walk.cols.back().size
                    : rotation);
  if (auto reduce = dyn_cast<ReduceOp>(def)) // A value per row does not rotate.
    return walk.formOf(reduce) == ReduceForm::vertical
               ? evalVertical(reduce)
               : values.lookup({value, 0});
  return computeInBody(def, rotation);
}

/// An op of a map's body; one that is kept is computed in the first pass only.
/// One that turns out to be the same for the whole row is at hand anyway.
Emitted BodyEmitter::computeInBody(Operation *op, int64_t rotation) {
  Kept *kept = keptValues.lookup(op->getResult(0));
  if (kept && kept->pass && *kept->pass < pass)
    return load(kept->access, rotation);
  SmallVector<Emitted> operands;
  for (Value operand : op->getOperands())
    operands.push_back(eval(operand, rotation));
  Emitted result = evalInner(op, operands, rotation);
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
static void allowFusedMultiplyAdd(Operation *op) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    op->setAttr(fast.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(),
                                              arith::FastMathFlags::contract));
}

Emitted BodyEmitter::evalInner(Operation *op, ArrayRef<Emitted> operands,
                               int64_t rotation) {
  if (auto index = dyn_cast<IndexOp>(op))
    return evalIndex(index.getDimAttr(), rotation);
  if (auto draw = dyn_cast<DrawOpInterface>(op))
    return evalDraw(draw, operands, rotation);
  unsigned scope = 0;
  bool isVector = false;
  for (const Emitted &operand : operands) {
    scope = std::max(scope, operand.scope);
    isVector |= isa<VectorType>(operand.value.getType());
  }
  if (isa<arith::DivFOp>(op) && isVector &&
      !isa<VectorType>(operands[1].value.getType()))
    return multiplyByInverse(operands[0], operands[1]);
  OpBuilder &b = scopes[scope].builder;
  IRMapping mapping;
  for (auto [operand, emitted] : llvm::zip_equal(op->getOperands(), operands))
    mapping.map(operand, isVector ? splat(b, emitted.value) : emitted.value);
  Operation *copy = b.insert(op->cloneWithoutRegions(mapping));
  allowFusedMultiplyAdd(copy);
  if (isVector)
    copy->getResult(0).setType(
        VectorType::get({place.width}, op->getResult(0).getType()));
  return {copy->getResult(0), scope};
}

/// A division by what is the same for a whole row costs a multiplication; its
/// result may differ in the last place.
Emitted BodyEmitter::multiplyByInverse(Emitted value, Emitted divisor) {
  OpBuilder &outer = scopes[divisor.scope].builder;
  Value one = arith::ConstantOp::create(outer, loc(), outer.getF32FloatAttr(1));
  Value inverse = arith::DivFOp::create(outer, loc(), one, divisor.value);
  unsigned scope = std::max(value.scope, divisor.scope);
  OpBuilder &b = scopes[scope].builder;
  Value product =
      arith::MulFOp::create(b, loc(), value.value, splat(b, inverse));
  allowFusedMultiplyAdd(product.getDefiningOp());
  return {product, scope};
}

Emitted BodyEmitter::evalIndex(StringAttr dim, int64_t rotation) {
  unsigned scope = scopeOf(dim);
  OpBuilder &b = scopes[scope].builder;
  for (auto &[key, position] : scopes[scope].positions) {
    if (key != dim)
      continue;
    Value at = rotated(b, key, position, rotation);
    Value index = arith::TruncIOp::create(b, loc(), b.getI32Type(), at);
    if (dim == walk.vectorKey())
      index = arith::AddIOp::create(b, loc(), splat(b, index),
                                    lanePositions(b, b.getI32Type(), 1));
    return {index, scope};
  }
  OpBuilder &outer = scopes.front().builder; // a dim of size one
  return {arith::ConstantOp::create(outer, loc(), outer.getI32IntegerAttr(0)),
          0};
}

/// Row-major position in the whole space of the current element, with `batch`
/// counted from the first sample and other dims from their offsets; a vector of
/// i64 along the vector loop.
Emitted BodyEmitter::countPosition(DrawOpInterface op,
                                   ArrayRef<Emitted> operands,
                                   int64_t rotation) {
  auto space = tensorType(op->getParentOp()->getResult(0));
  SmallVector<int64_t> strides =
      rowMajor(op.getSpace().value_or(space.getShape()));
  OpBuilder &b = scopes.back().builder;
  Value sum = number(0);
  bool isVector = false;
  auto add = [&](Value position, int64_t stride) {
    Value part = arith::MulIOp::create(b, loc(), position, number(stride));
    sum = arith::AddIOp::create(b, loc(), sum, part);
  };
  int64_t laneStride = 0;
  auto wide = [&](Value position) {
    return arith::ExtUIOp::create(
        b, loc(), typeLike(position.getType(), b.getI64Type()), position);
  };
  Value ofLanes; // offsets that differ along the vector loop
  auto addOffset = [&](Value offset, int64_t stride) {
    if (!isa<VectorType>(offset.getType()))
      return add(wide(offset), stride);
    Value part =
        arith::MulIOp::create(b, loc(), wide(offset), splat(b, number(stride)));
    ofLanes = ofLanes ? arith::AddIOp::create(b, loc(), ofLanes, part) : part;
  };
  if (ArrayAttr dims = op.getDimsAttr())
    for (auto [offset, name] :
         llvm::zip_equal(operands.slice(3, op.getOffsets().size()),
                         dims.getAsRange<StringAttr>()))
      addOffset(offset.value, strides[dimsOf(space).find(name)]);
  for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
    if (name == "batch")
      add(wide(operands[2].value), strides[i]);
    for (auto &scope : scopes)
      for (auto &[key, position] : scope.positions)
        if (key == name && space.getDimSize(i) != 1) {
          add(rotated(b, key, position, rotation), strides[i]);
          isVector |= key == walk.vectorKey();
          laneStride = key == walk.vectorKey() ? strides[i] : laneStride;
        }
  }
  if (isVector)
    sum = arith::AddIOp::create(b, loc(), splat(b, sum),
                                lanePositions(b, b.getI64Type(), laneStride));
  if (ofLanes)
    sum = arith::AddIOp::create(b, loc(), sum, ofLanes);
  return {sum, static_cast<unsigned>(scopes.size() - 1)};
}

Emitted BodyEmitter::evalDraw(DrawOpInterface op, ArrayRef<Emitted> operands,
                              int64_t rotation) {
  Emitted position = countPosition(op, operands, rotation);
  OpBuilder &b = scopes[position.scope].builder;
  Type words = typeLike(position.value.getType(), b.getI32Type());
  bool isVector = isa<VectorType>(words);
  auto spread = [&](Value value) { return isVector ? splat(b, value) : value; };
  Value shift = constantOf(b, loc(), position.value.getType(), 32);
  Value low = arith::TruncIOp::create(b, loc(), words, position.value);
  Value high = arith::TruncIOp::create(
      b, loc(), words, arith::ShRUIOp::create(b, loc(), position.value, shift));
  Value word = philoxWord(
      b, loc(),
      {low, high, spread(operands[1].value), constantOf(b, loc(), words, 0)},
      {spread(operands[0].value), spread(streams.lookup(op))});
  Value value =
      isa<StochasticRoundOp>(op) ? spread(operands.back().value) : Value();
  return {fromWord(b, loc(), op, word, value), position.scope};
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
