// Gradients of the primitive ops other than map and contract.
#include "dialects/transformer/HeadGradient.h"

using namespace mlir;
using namespace meshwork::transformer;

using Gradients = FailureOr<SmallVector<Value>>;

/// `value` repeated along the dims of `type` that it lacks.
static Value broadcastTo(OpBuilder &builder, Location loc, Value value,
                         Type type) {
  if (value.getType() == type)
    return value;
  return buildMap(builder, loc, type, value,
                  [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
}

Gradients ReduceOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                   ArrayRef<bool> needed) {
  if (!needed[0] || getKind() == Reduction::max)
    return SmallVector<Value>{Value()};
  return SmallVector<Value>{
      broadcastTo(builder, getLoc(), gradients[0], getInput().getType())};
}

Gradients RollOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                 ArrayRef<bool> needed) {
  int64_t size = tensorType(getInput()).getShape().back();
  int64_t back = (size - static_cast<int64_t>(getShift())) % size;
  return SmallVector<Value>{
      RollOp::create(builder, getLoc(), getType(), gradients[0], back)};
}

Gradients SliceOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                  ArrayRef<bool> needed) {
  return SmallVector<Value>{UnsliceOp::create(
      builder, getLoc(), getInput().getType(), gradients[0], getDimAttr(),
      builder.getDenseI64ArrayAttr(getOffset()))};
}

Gradients UnsliceOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                    ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  for (auto [i, part] : llvm::enumerate(getParts()))
    if (needed[i])
      result[i] = SliceOp::create(builder, getLoc(), part.getType(),
                                  gradients[0], getDimAttr(), getOffsets()[i]);
  return result;
}

/// `gradient` with zeros where `op` looked up its padding row.
static Value withoutPadding(OpBuilder &builder, EmbeddingOp op,
                            Value gradient) {
  if (!op.getPaddingId())
    return gradient;
  auto id = static_cast<int32_t>(*op.getPaddingId());
  return buildMap(
      builder, op.getLoc(), gradient.getType(), {gradient, op.getIds()},
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        Value isPadding = arith::CmpIOp::create(
            b, arith::CmpIPredicate::eq, x[1],
            arith::ConstantOp::create(b, b.getI32IntegerAttr(id)));
        return arith::SelectOp::create(
            b, isPadding, arith::ConstantOp::create(b, b.getF32FloatAttr(0)),
            x[0]);
      });
}

Gradients EmbeddingOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                      ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  if (needed[0])
    result[0] = EmbeddingGradOp::create(
        builder, getLoc(), getTable().getType(), getIds(),
        withoutPadding(builder, *this, gradients[0]), getFirstRow());
  return result;
}

Gradients AttentionOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                      ArrayRef<bool> needed) {
  if (gradients[1])
    return emitOpError("has no gradient through its log-sum-exp");
  auto grad = AttentionGradOp::create(
      builder, getLoc(), getQ().getType(), getK().getType(), getV().getType(),
      getQ(), getK(), getV(), getResult(), getLse(), gradients[0],
      getDocuments(), getPositions(), getKeys(), getRandom(), getTermsAttr(),
      UnitAttr());
  SmallVector<Value> result(getNumOperands());
  result[0] = grad.getDq();
  result[1] = grad.getDk();
  result[2] = grad.getDv();
  return result;
}

FloatAttr meshwork::transformer::knownScalar(Value value) {
  auto map = value.getDefiningOp<MapOp>();
  if (!map || tensorType(value).getRank() != 0)
    return {};
  llvm::DenseMap<Value, Attribute> known;
  for (auto [input, argument] :
       llvm::zip_equal(map.getInputs(), map.getBody().getArguments()))
    if (auto source = input.getDefiningOp<MapOp>();
        source && source.getInputs().empty())
      known[argument] = knownScalar(input);
  Block &body = map.getBody().front();
  for (Operation &op : body.without_terminator()) {
    auto operands = llvm::map_to_vector(
        op.getOperands(), [&](Value operand) { return known.lookup(operand); });
    SmallVector<OpFoldResult> results;
    if (failed(op.fold(operands, results)) || results.size() != 1)
      continue;
    auto same = dyn_cast<Value>(results[0]);
    known[op.getResult(0)] =
        same ? known.lookup(same) : cast<Attribute>(results[0]);
  }
  Value yielded =
      body.getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  return dyn_cast_or_null<FloatAttr>(known.lookup(yielded));
}

HeadLossGradOp meshwork::transformer::withGradients(HeadLossOp op) {
  OpBuilder builder(op);
  auto fused = HeadLossGradOp::create(
      builder, op.getLoc(), op.getLoss().getType(), op.getHidden().getType(),
      op.getWeight().getType(), op.getHidden(), op.getWeight(), op.getTargets(),
      Value(), Value(), Value(), op.getCounted(), op.getScaleAttr(),
      op.getCapAttr(), builder.getI64IntegerAttr(0), ArrayAttr());
  op.getLoss().replaceAllUsesWith(fused.getLoss());
  return fused;
}

Gradients HeadLossOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                                     ArrayRef<bool> needed) {
  HeadLossGradOp fused = withGradients(*this);
  FloatAttr known = knownScalar(gradients[0]);
  bool isOne = known && known.getValue().isExactlyValue(1);
  auto scaled = [&](Value value) -> Value {
    if (isOne)
      return value;
    return buildMap(builder, getLoc(), value.getType(), {value, gradients[0]},
                    [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                      return arith::MulFOp::create(b, x[0], x[1]);
                    });
  };
  SmallVector<Value> result(getNumOperands());
  if (needed[0])
    result[0] = scaled(fused.getDhidden());
  if (needed[1])
    result[1] = scaled(fused.getDweight());
  return result;
}
