// One instruction for each op of the step.
#include "passes/codegen/KernelEmitter.h"
#include "passes/schedule/LowerToSchedule.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

FailureOr<Value> Lowering::view(Value value) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  return Placement::view(builder, value.getLoc(), *place);
}

/// The view of a value, or out.
#define VIEW_OR_FAIL(name, value)                                              \
  FailureOr<Value> name = view(value);                                         \
  if (failed(name))                                                            \
    return failure();

/// Names the parameter that an op reads, or else what it is.
StringAttr Lowering::sourceOf(Operation *op) {
  std::string name;
  if (auto noted = op->getAttrOfType<StringAttr>("transformer.parameter"))
    return noted; // of a quantized product
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (auto parameter = dyn_cast_or_null<transformer::ParameterOp>(def))
      name = parameter.getName().str();
    else if (auto state = dyn_cast_or_null<StateOp>(def);
             state && !state.getName().empty())
      name = state.getName().str();
    if (!name.empty())
      break;
  }
  for (Operation *user : op->getUsers())
    if (auto accumulate = dyn_cast<AccumulateOp>(user);
        accumulate && !accumulate.getName().empty())
      name = (accumulate.getName() + " (gradient)").str();
  if (name.empty())
    name = op->getName().stripDialect().str();
  return builder.getStringAttr(name);
}

LogicalResult Lowering::lowerFused(FusedOp op) {
  SmallVector<Place> places;
  SmallVector<Value> views;
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                           llvm::to_vector_of<Value>(op->getResults()))) {
    FailureOr<Place> place = placement.of(value);
    if (failed(place))
      return failure();
    places.push_back(*place);
    views.push_back(Placement::view(builder, op.getLoc(), *place));
  }
  LaunchOp::create(builder, op.getLoc(), sourceOf(op),
                   i64(static_cast<int64_t>(codegen::countFlops(op))),
                   i64(bytesOfValues(op)), kernels.add(op, places),
                   i64(codegen::countItems(op)), i64(op.getNumResults()),
                   views);
  return success();
}

FailureOr<Lowering::Destination> Lowering::destinationOf(Value value) {
  auto accumulate = value.hasOneUse()
                        ? dyn_cast<AccumulateOp>(*value.getUsers().begin())
                        : AccumulateOp();
  if (!accumulate) {
    FailureOr<Place> place = placement.of(value);
    if (failed(place))
      return failure();
    return Destination{*place, Accumulate::no};
  }
  StateKey key(accumulate.getKind(), accumulate.getName());
  Place place = placement.state(key, tensorType(value));
  if (zeroed.contains(key) || !written.insert(key).second)
    return Destination{place, Accumulate::yes};
  return Destination{place, Accumulate::after_first_microbatch};
}

/// `result` lies where `operand` lay, which nothing else needs.
LogicalResult Lowering::takeOver(Value operand, Value result) {
  FailureOr<Place> place = placement.of(operand);
  if (failed(place))
    return failure();
  if (!operand.hasOneUse() ||
      isa_and_nonnull<StateOp, transformer::ParameterOp, SliceOp>(
          operand.getDefiningOp()))
    return emitError(operand.getLoc()) << "a sum of " << operand.getType()
                                       << " is added to, but has other uses";
  placement.set(result, *place);
  return success();
}

/// The view of what the epilogue reads or writes, if there is one.
FailureOr<Value> Lowering::auxOf(const ProductParts &product, const Place &lhs,
                                 const Place &rhs) {
  if (!product.aux)
    return Value();
  FailureOr<Place> place = placement.of(product.aux);
  if (failed(place))
    return failure();
  bool isSum = product.epilogue == Epilogue::sum_lhs ||
               product.epilogue == Epilogue::sum_rhs;
  if (isSum) {
    place->shape = {tensorType(product.aux).getNumElements()};
    place->strides = {1};
    return Placement::view(builder, product.op->getLoc(), *place);
  }
  FailureOr<MatmulPlaces> places = matmulPlaces(product, lhs, rhs, *place);
  if (failed(places))
    return failure();
  return Placement::view(builder, product.op->getLoc(), places->dst);
}

LogicalResult Lowering::lowerProduct(const ProductParts &product) {
  Operation *op = product.op;
  FailureOr<Place> lhs = placement.of(product.lhs),
                   rhs = placement.of(product.rhs);
  // A bias with all dims is a sum that the product is added to, in its place.
  bool addsToSum = product.bias && tensorType(product.bias).getRank() ==
                                       tensorType(product.result).getRank();
  if (addsToSum && failed(takeOver(product.bias, product.result)))
    return failure();
  FailureOr<Destination> destination = destinationOf(product.result);
  if (addsToSum && succeeded(destination))
    destination->accumulate = Accumulate::yes;
  if (failed(lhs) || failed(rhs) || failed(destination))
    return failure();
  FailureOr<MatmulPlaces> places =
      matmulPlaces(product, *lhs, *rhs, destination->place);
  FailureOr<Value> aux = auxOf(product, *lhs, *rhs);
  if (failed(places) || failed(aux))
    return failure();
  Value bias;
  if (product.bias && !addsToSum) {
    FailureOr<Place> place = placement.of(product.bias);
    if (failed(place))
      return failure();
    place->shape = {tensorType(product.bias).getNumElements()};
    place->strides = {1};
    bias = Placement::view(builder, op->getLoc(), *place);
  }
  SmallVector<Value> scales;
  for (Value scale : product.scales) {
    VIEW_OR_FAIL(at, scale);
    scales.push_back(*at);
  }
  auto at = [&](const Place &place) {
    return Placement::view(builder, op->getLoc(), place);
  };
  Value lhsView = at(places->lhs), rhsView = at(places->rhs),
        dstView = at(places->dst);
  MatmulOp::create(
      builder, op->getLoc(), sourceOf(op), i64(product.flops),
      i64(bytesOfValues(op)),
      AccumulateAttr::get(builder.getContext(), destination->accumulate),
      EpilogueAttr::get(builder.getContext(), product.epilogue), lhsView,
      rhsView, scales, bias, *aux, dstView);
  return success();
}

SmallVector<Value> Lowering::randomViews(ValueRange random) {
  if (random.empty())
    return {};
  Place place =
      placement.stepInput(StepInput::seed); // The three lie side by side.
  place.shape = {3};
  place.strides = {1};
  SmallVector<Value> views = {
      Placement::view(builder, random[0].getLoc(), place)};
  for (Value firstHead : random.drop_front(3))
    views.push_back(
        Placement::view(builder, firstHead.getLoc(), *placement.of(firstHead)));
  return views;
}

LogicalResult Lowering::lowerAttention(transformer::AttentionOp op) {
  VIEW_OR_FAIL(q, op.getQ());
  VIEW_OR_FAIL(k, op.getK());
  VIEW_OR_FAIL(v, op.getV());
  VIEW_OR_FAIL(out, op.getResult());
  VIEW_OR_FAIL(lse, op.getLse());
  schedule::AttentionOp::create(
      builder, op.getLoc(), sourceOf(op), i64(op.getFlops()),
      i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), *q, *k, *v, viewOrNone(op.getDocuments()),
      randomViews(op.getRandom()), *out, *lse);
  return success();
}

LogicalResult Lowering::lowerAttentionGrad(transformer::AttentionGradOp op) {
  VIEW_OR_FAIL(q, op.getQ());
  VIEW_OR_FAIL(k, op.getK());
  VIEW_OR_FAIL(v, op.getV());
  VIEW_OR_FAIL(out, op.getResult());
  VIEW_OR_FAIL(lse, op.getLse());
  VIEW_OR_FAIL(dout, op.getGradient());
  VIEW_OR_FAIL(dq, op.getDq());
  VIEW_OR_FAIL(dk, op.getDk());
  VIEW_OR_FAIL(dv, op.getDv());
  schedule::AttentionGradOp::create(
      builder, op.getLoc(), sourceOf(op), i64(op.getFlops()),
      i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), op.getDuplicatedAttr(), *q, *k, *v, *out, *lse,
      *dout, viewOrNone(op.getDocuments()), randomViews(op.getRandom()), *dq,
      *dk, *dv);
  return success();
}

Value Lowering::viewOrNone(Value value) {
  return value ? Placement::view(builder, value.getLoc(), *placement.of(value))
               : Value();
}

LogicalResult Lowering::lowerEmbedding(transformer::EmbeddingOp op) {
  VIEW_OR_FAIL(table, op.getTable());
  VIEW_OR_FAIL(ids, op.getIds());
  VIEW_OR_FAIL(out, op.getResult());
  schedule::EmbeddingOp::create(builder, op.getLoc(), sourceOf(op), i64(0),
                                i64(2 * bytesOfType(op.getType())), *table,
                                *ids, viewOrNone(op.getFirstRow()), *out);
  return success();
}

LogicalResult Lowering::lowerEmbeddingGrad(transformer::EmbeddingGradOp op) {
  VIEW_OR_FAIL(ids, op.getIds());
  VIEW_OR_FAIL(gradient, op.getGradient());
  FailureOr<Destination> destination = destinationOf(op.getResult());
  if (failed(destination))
    return failure();
  Value table = Placement::view(builder, op.getLoc(), destination->place);
  schedule::EmbeddingGradOp::create(
      builder, op.getLoc(), sourceOf(op), i64(0),
      i64(3 * bytesOfType(op.getGradient().getType())),
      AccumulateAttr::get(builder.getContext(), destination->accumulate), *ids,
      *gradient, viewOrNone(op.getFirstRow()), table);
  return success();
}

LogicalResult Lowering::lowerRotaryTable(transformer::RotaryTableOp op) {
  SmallVector<Value> views;
  OpBuilder atOnce = OpBuilder::atBlockEnd(&once.getBody().front());
  constexpr StringRef names[] = {"rotary cosine", "rotary sine"};
  for (auto [result, name] : llvm::zip_equal(op->getResults(), names)) {
    placement.set(result,
                  placement.persistent(name, BufferKind::constants,
                                       tensorType(result).getShape(),
                                       tensorType(result).getElementType()));
    views.push_back(
        Placement::view(atOnce, op.getLoc(), *placement.of(result)));
  }
  schedule::RotaryTableOp::create(
      atOnce, op.getLoc(), sourceOf(op), i64(0), i64(bytesOfValues(op)),
      op.getInverseFrequenciesAttr(), op.getScaleAttr(), views[0], views[1]);
  return success();
}

/// Parts are written where they lie; before the first of them, what no part
/// covers is set to zero.
LogicalResult Lowering::zeroAround(Operation *producer) {
  for (Operation *user : producer->getUsers()) {
    auto op = dyn_cast<UnsliceOp>(user);
    if (!op || !cleared.insert(user).second)
      continue;
    int64_t covered = 0, elements = tensorType(op.getResult()).getNumElements();
    for (Value part : op.getParts())
      covered += tensorType(part).getNumElements();
    if (covered == elements)
      continue;
    FailureOr<Place> place = placement.of(op.getResult());
    if (failed(place))
      return failure();
    // Rows may lie apart.
    place->shape = {place->shape.front() * place->strides.front()};
    place->strides = {1};
    Value view = Placement::view(builder, op.getLoc(), *place);
    FillOp::create(builder, op.getLoc(),
                   builder.getStringAttr("zero around parts"), i64(0),
                   i64(bytesOfType(op.getType())), builder.getF32FloatAttr(0),
                   view);
  }
  return success();
}

/// Elementwise results are computed in the place of the state; anything else
/// has no business here.
LogicalResult Lowering::lowerAssign(AssignOp op) {
  FailureOr<Place> value = placement.of(op.getValue());
  if (failed(value))
    return failure();
  Place state =
      placement.state({op.getKind(), op.getName()}, tensorType(op.getValue()));
  if (value->buffer == state.buffer)
    return success();
  return op.emitOpError(
      "assigns a value that lies elsewhere; it is assigned twice, or is itself "
      "a parameter or a part of a tensor");
}

} // namespace meshwork::schedule
