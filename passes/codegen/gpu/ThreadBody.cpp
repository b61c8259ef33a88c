// Values of ThreadBody: operands, maps, rolls. Sums: ThreadSums.cpp.
#include "passes/codegen/gpu/ThreadBody.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/codegen/BodyEmitter.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

ThreadValue ThreadBody::eval(Value value, int64_t rotation) {
  for (int at : {-1, place ? static_cast<int>(place->number) : 0})
    if (auto known = values.find({value, rotation, at}); known != values.end())
      return known->second;
  ThreadValue result = compute(value, rotation);
  return values[{value, rotation,
                 result.scope & ofPlace ? static_cast<int>(place->number)
                                        : -1}] = result;
}

void ThreadBody::forgetComputed() {
  for (auto known = values.begin(); known != values.end(); ++known)
    if (known->second.scope & ofPlace)
      values.erase(known);
}

ThreadValue ThreadBody::compute(Value value, int64_t rotation) {
  Operation *def = value.getDefiningOp();
  if (!def) {
    auto argument = cast<BlockArgument>(value);
    if (auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp()))
      return eval(map.getInputs()[argument.getArgNumber()], rotation);
    ThreadValue stored = loadStored(argument.getArgNumber(), rotation);
    // What a loop over rows keeps is kept as it is stored, in fewer registers.
    unsigned scope =
        stored.scope == ofPlace ? static_cast<unsigned>(ofBoth) : stored.scope;
    return {fromStorageOf(builders[scope], stored.value,
                          access(argument.getArgNumber()).type),
            scope};
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
               : values.lookup({value, 0, -1});
  return computeInBody(def, rotation);
}

ThreadValue ThreadBody::computeInBody(Operation *op, int64_t rotation) {
  if (place && place->hasNoMatch && !rotation &&
      llvm::any_of(matches, [&](const ColumnMatch &match) {
        return match.compare == op;
      })) // Only here, so not known for other places.
    return {arith::ConstantOp::create(builders[ofBoth], loc(),
                                      builders[ofBoth].getBoolAttr(false)),
            ofBoth};
  SmallVector<ThreadValue> operands;
  for (Value operand : op->getOperands())
    operands.push_back(eval(operand, rotation));
  if (auto index = dyn_cast<IndexOp>(op))
    return evalIndex(index.getDimAttr(), rotation);
  if (auto draw = dyn_cast<DrawOpInterface>(op))
    return evalDraw(draw, operands, rotation);
  bool divides =
      isa<arith::DivFOp>(op) && isa<VectorType>(operands[0].value.getType());
  if (divides && !isa<VectorType>(operands[1].value.getType()))
    return multiplyByInverse(operands[0], operands[1]);
  return cloneOver(op, operands);
}

/// Multiplications and additions may become one rounding; quotients and roots
/// may be the machine's approximations (README.md), and exponentials of which
/// nobody sees the last bits. Nothing else moves.
static void allowApproximation(Operation *op, bool hidesLastBits = false) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fast)
    return;
  arith::FastMathFlags flags = arith::FastMathFlags::contract;
  if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp>(op) || hidesLastBits)
    flags = flags | arith::FastMathFlags::afn;
  op->setAttr(fast.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}

ThreadValue ThreadBody::cloneOver(Operation *op,
                                  ArrayRef<ThreadValue> operands) {
  unsigned scope = uniform;
  bool isWide = false;
  for (const ThreadValue &operand : operands) {
    scope |= operand.scope;
    isWide |= isa<VectorType>(operand.value.getType());
  }
  OpBuilder &b = builders[scope];
  IRMapping mapping;
  for (auto [operand, emitted] : llvm::zip_equal(op->getOperands(), operands))
    mapping.map(operand, isWide ? spread(b, emitted.value) : emitted.value);
  Operation *copy = b.insert(op->cloneWithoutRegions(mapping));
  auto power = dyn_cast<math::ExpOp>(op);
  allowApproximation(copy, power && hidesLastBits(power, walk));
  if (isWide)
    copy->getResult(0).setType(vectorOf(op->getResult(0).getType()));
  return {copy->getResult(0), scope};
}

ThreadValue ThreadBody::multiplyByInverse(ThreadValue value,
                                          ThreadValue divisor) {
  OpBuilder &outer = builders[divisor.scope];
  Value inverse =
      arith::DivFOp::create(outer, loc(), constant(1), divisor.value);
  allowApproximation(inverse.getDefiningOp());
  unsigned scope = value.scope | divisor.scope;
  OpBuilder &b = builders[scope];
  Value product =
      arith::MulFOp::create(b, loc(), value.value, spread(b, inverse));
  allowApproximation(product.getDefiningOp());
  return {product, scope};
}

/// 0, step, 2 step ... along a vector.
Value ThreadBody::lanes(Type element, int64_t step) {
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < geometry.width; ++i)
    steps.push_back(IntegerAttr::get(element, i * step));
  return arith::ConstantOp::create(
      b, loc(),
      DenseElementsAttr::get(cast<VectorType>(vectorOf(element)), steps));
}

ThreadValue ThreadBody::evalIndex(StringAttr dim, int64_t rotation) {
  ThreadValue position = positionOf(dim, rotation);
  if (!position.value)
    return {wordOf(0), uniform}; // a dim of size one
  if (geometry.countsFar)
    position.value =
        arith::TruncIOp::create(builders[position.scope], loc(),
                                builders[uniform].getI32Type(), position.value);
  if (dim != walk.vectorKey() || !isVector())
    return position;
  OpBuilder &b = builders[position.scope];
  Value all = arith::AddIOp::create(b, loc(), spread(b, position.value),
                                    lanes(b.getI32Type(), 1));
  return {all, position.scope};
}

/// Draws for up to four elements at once: longer vectors would take the CPU's
/// way of multiplying in pairs.
static Value drawWords(OpBuilder &b, Location loc, Value position,
                       const std::array<Value, 4> &uniforms) {
  auto vectors = dyn_cast<VectorType>(position.getType());
  int64_t width = vectors ? vectors.getNumElements() : 1;
  if (width > 4) {
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, width));
    ArrayRef<int64_t> low = ArrayRef(all).take_front(width / 2),
                      high = ArrayRef(all).drop_front(width / 2);
    Value first = drawWords(
        b, loc, vector::ShuffleOp::create(b, loc, position, position, low),
        uniforms);
    Value second = drawWords(
        b, loc, vector::ShuffleOp::create(b, loc, position, position, high),
        uniforms);
    return vector::ShuffleOp::create(b, loc, first, second, all);
  }
  Type words = vectors ? Type(vectors.clone(b.getI32Type())) : b.getI32Type();
  auto spread = [&](Value value) -> Value {
    return vectors
               ? vector::BroadcastOp::create(b, loc, words, value).getResult()
               : value;
  };
  auto [step, zero, seed, stream] = uniforms;
  Value high = arith::ShRUIOp::create(
      b, loc, position, constantOf(b, loc, position.getType(), 32));
  return philoxWord(b, loc,
                    {arith::TruncIOp::create(b, loc, words, position),
                     arith::TruncIOp::create(b, loc, words, high), spread(step),
                     spread(zero)},
                    {spread(seed), spread(stream)});
}

/// As BodyEmitter's: the element's row-major position in the whole space, with
/// `batch` counted from the first sample and other dims from their offsets.
ThreadValue ThreadBody::evalDraw(DrawOpInterface op,
                                 ArrayRef<ThreadValue> operands,
                                 int64_t rotation) {
  auto space = tensorType(op->getParentOp()->getResult(0));
  SmallVector<int64_t> strides =
      rowMajor(op.getSpace().value_or(space.getShape()));
  OpBuilder &b = builders[ofElement()];
  Value sum = arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(0));
  auto add = [&](Value position, int64_t stride) {
    Value wide =
        position.getType() == b.getI64Type()
            ? position
            : arith::ExtUIOp::create(b, loc(), b.getI64Type(), position)
                  .getResult();
    Value step =
        arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(stride));
    sum = arith::AddIOp::create(b, loc(), sum,
                                arith::MulIOp::create(b, loc(), wide, step));
  };
  Value ofLanes; // offsets that differ along the vector
  auto addOffset = [&](Value offset, int64_t stride) {
    if (!isa<VectorType>(offset.getType()))
      return add(offset, stride);
    Value wide =
        arith::ExtUIOp::create(b, loc(), vectorOf(b.getI64Type()), offset);
    Value step =
        arith::ConstantOp::create(b, loc(), b.getI64IntegerAttr(stride));
    Value part = arith::MulIOp::create(b, loc(), wide, spread(b, step));
    ofLanes = ofLanes ? arith::AddIOp::create(b, loc(), ofLanes, part) : part;
  };
  if (ArrayAttr dims = op.getDimsAttr())
    for (auto [offset, name] :
         llvm::zip_equal(operands.slice(3, op.getOffsets().size()),
                         dims.getAsRange<StringAttr>()))
      addOffset(offset.value, strides[dimsOf(space).find(name)]);
  int64_t laneStride = 0;
  for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
    if (name == "batch")
      add(operands[2].value, strides[i]);
    ThreadValue position =
        space.getDimSize(i) == 1 ? ThreadValue() : positionOf(name, rotation);
    if (!position.value)
      continue;
    add(position.value, strides[i]);
    laneStride = name == walk.vectorKey() ? strides[i] : laneStride;
  }
  bool isWide = isVector() && laneStride;
  if (isWide)
    sum = arith::AddIOp::create(b, loc(), spread(b, sum),
                                lanes(b.getI64Type(), laneStride));
  if (ofLanes)
    sum = arith::AddIOp::create(b, loc(), sum, ofLanes);
  Value word = drawWords(
      b, loc(), sum,
      {operands[1].value, wordOf(0), operands[0].value, streams.lookup(op)});
  Value value;
  if (isa<StochasticRoundOp>(op))
    value = isWide ? spread(b, operands.back().value) : operands.back().value;
  return {fromWord(b, loc(), op, word, value), ofElement()};
}

/// What `value` changes with, sums over chunks aside.
unsigned ThreadBody::scopeOf(Value value) {
  Operation *def = value.getDefiningOp();
  unsigned scope = uniform;
  if (def) {
    for (Value operand : def->getOperands())
      scope |= scopeOf(operand);
    def->walk([&](Operation *inner) {
      scope |= isa<IndexOp, DrawOpInterface>(inner) ? ofElement() : uniform;
    });
    return scope;
  }
  const Access &access = walk.inputs[cast<BlockArgument>(value).getArgNumber()];
  for (const LoopDim &dim : walk.rows)
    scope |= access.along(dim.key) ? ofRow : uniform;
  return scope | (walk.hasCols(access) ? ofPlace : uniform);
}

} // namespace meshwork::codegen
