// Values of a cluster: operands, maps, rolls, draws.
#include "passes/codegen/ValueEmitter.h"
#include "dialects/transformer/Dims.h"
#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/Narrow.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

Emitted ValueEmitter::compute(Value value, int64_t rotation) {
  Operation *def = value.getDefiningOp();
  if (!def) {
    auto argument = cast<BlockArgument>(value);
    if (auto map = dyn_cast<MapOp>(argument.getOwner()->getParentOp()))
      return eval(map.getInputs()[argument.getArgNumber()], rotation);
    return loadInput(argument.getArgNumber(), rotation);
  }
  if (auto map = dyn_cast<MapOp>(def))
    return asStored(value,
                    eval(map.getBody().front().getTerminator()->getOperand(
                             cast<OpResult>(value).getResultNumber()),
                         rotation));
  if (auto roll = dyn_cast<RollOp>(def))
    return eval(roll.getInput(),
                roll.getShift()
                    ? (rotation + roll.getShift()) % walk.cols.back().size
                    : rotation);
  if (auto reduce = dyn_cast<ReduceOp>(def)) // A value per row does not rotate.
    return walk.formOf(reduce) == ReduceForm::vertical ? evalVertical(reduce)
                                                       : defined(reduce);
  return computeInBody(def, rotation);
}

/// Values of 8 bits are rounded also where others of the cluster read them:
/// what differs from them that much would be another model.
Emitted ValueEmitter::asStored(Value value, Emitted computed) {
  Type element = tensorType(value).getElementType();
  if (!isNarrow(element) ||
      llvm::all_of(value.getUsers(), llvm::IsaPred<YieldOp>))
    return computed;
  OpBuilder &b = builderOf(computed.scope);
  Value stored = toNarrow(b, loc(), computed.value, element);
  return {fromNarrow(b, loc(), stored, element), computed.scope};
}

Emitted ValueEmitter::computeOver(Operation *op, int64_t rotation) {
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
    return eval(operand, rotation);
  });
  if (auto index = dyn_cast<IndexOp>(op))
    return evalIndex(index.getDimAttr(), rotation);
  if (auto draw = dyn_cast<DrawOpInterface>(op))
    return evalDraw(draw, operands, rotation);
  auto isVector = [&](unsigned i) {
    return isa<VectorType>(operands[i].value.getType());
  };
  if (isa<arith::DivFOp>(op) && isVector(0) && !isVector(1))
    return multiplyByInverse(operands[0], operands[1]);
  return cloneOver(op, operands);
}

Emitted ValueEmitter::cloneOver(Operation *op, ArrayRef<Emitted> operands) {
  unsigned scope = 0;
  bool isWide = false;
  for (const Emitted &operand : operands) {
    scope = join(scope, operand.scope);
    isWide |= isa<VectorType>(operand.value.getType());
  }
  OpBuilder &b = builderOf(scope);
  IRMapping mapping;
  for (auto [operand, emitted] : llvm::zip_equal(op->getOperands(), operands))
    mapping.map(operand, isWide ? spread(b, emitted.value) : emitted.value);
  Operation *copy = b.insert(op->cloneWithoutRegions(mapping));
  relax(copy, op);
  if (isWide)
    copy->getResult(0).setType(vectorOf(op->getResult(0).getType()));
  return {copy->getResult(0), scope};
}

/// A division by what is the same for a whole row costs a multiplication; its
/// result may differ in the last place.
Emitted ValueEmitter::multiplyByInverse(Emitted value, Emitted divisor) {
  Value inverse = inverseOf(builderOf(divisor.scope), divisor.value);
  unsigned scope = join(value.scope, divisor.scope);
  OpBuilder &b = builderOf(scope);
  Value product =
      arith::MulFOp::create(b, loc(), value.value, spread(b, inverse));
  relax(product.getDefiningOp(), nullptr);
  return {product, scope};
}

Emitted ValueEmitter::evalIndex(StringAttr dim, int64_t rotation) {
  auto [index, scope] = positionOf(dim, rotation, /*forElement=*/false);
  if (!index)
    return {wordOf(0), 0};
  OpBuilder &b = builderOf(scope);
  if (index.getType() != b.getI32Type())
    index = arith::TruncIOp::create(b, loc(), b.getI32Type(), index);
  if (isAlongVector(dim)) {
    Value all = spread(b, index);
    index = arith::AddIOp::create(b, loc(), all, lanes(b, b.getI32Type(), 1));
  }
  return {index, scope};
}

/// Row-major position in the whole space of the current element, with `batch`
/// counted from the first sample and other dims from their offsets: i64, a
/// vector along the vector loop.
Value ValueEmitter::countPosition(OpBuilder &b, DrawOpInterface op,
                                  ArrayRef<Emitted> operands,
                                  int64_t rotation) {
  auto space = tensorType(op->getParentOp()->getResult(0));
  SmallVector<int64_t> strides =
      rowMajor(op.getSpace().value_or(space.getShape()));
  Value sum = wideOf(b, 0), ofLanes; // offsets that differ along the vector
  auto add = [&](Value position, int64_t stride) {
    Type type = position.getType(), wide = typeLike(type, b.getI64Type());
    if (type != wide)
      position = arith::ExtUIOp::create(b, loc(), wide, position);
    bool isVector = isa<VectorType>(type);
    Value step = wideOf(b, stride);
    Value part = arith::MulIOp::create(b, loc(), position,
                                       isVector ? spread(b, step) : step);
    Value &all = isVector ? ofLanes : sum;
    all = all ? arith::AddIOp::create(b, loc(), all, part) : part;
  };
  if (ArrayAttr dims = op.getDimsAttr())
    for (auto [offset, name] :
         llvm::zip_equal(operands.slice(3, op.getOffsets().size()),
                         dims.getAsRange<StringAttr>()))
      add(offset.value, strides[dimsOf(space).find(name)]);
  int64_t laneStride = 0;
  for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
    if (name == dims::samples)
      add(operands[2].value, strides[i]);
    Emitted position = space.getDimSize(i) == 1
                           ? Emitted()
                           : positionOf(name, rotation, /*forElement=*/true);
    if (!position.value)
      continue;
    add(position.value, strides[i]);
    laneStride = isAlongVector(name) ? strides[i] : laneStride;
  }
  if (laneStride) {
    Value all = spread(b, sum);
    sum = arith::AddIOp::create(b, loc(), all,
                                lanes(b, b.getI64Type(), laneStride));
  }
  return ofLanes ? arith::AddIOp::create(b, loc(), sum, ofLanes) : sum;
}

Emitted ValueEmitter::evalDraw(DrawOpInterface op, ArrayRef<Emitted> operands,
                               int64_t rotation) {
  OpBuilder &b = builderOf(ofElement());
  Value positions = countPosition(b, op, operands, rotation);
  Value word = drawWord(b, positions, operands[0].value, operands[1].value,
                        streams.lookup(op));
  Value value = operands[2].value;
  if (isa<StochasticRoundOp>(op))
    value = isa<VectorType>(positions.getType())
                ? spread(b, operands.back().value)
                : operands.back().value;
  return {fromWord(b, loc(), op, word, value), ofElement()};
}

} // namespace meshwork::codegen
