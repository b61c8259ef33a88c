// One instruction for each op of the step.
#include "dialects/transformer/Facts.h"
#include "passes/codegen/KernelEmitter.h"
#include "passes/schedule/LowerToSchedule.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

FailureOr<Value> Lowering::view(Value value) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  return builder.view(value.getLoc(), *place);
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
    views.push_back(builder.view(op.getLoc(), *place));
  }
  LaunchOp::create(builder, op.getLoc(), builder.sourceOf(op),
                   builder.i64(codegen::countFlops(op)),
                   builder.i64(bytesOfValues(op)), kernels.add(op, places),
                   builder.i64(codegen::countItems(op)),
                   builder.i64(op.getNumResults()), views);
  return success();
}

/// The view of what the epilogue reads or writes, if there is one.
FailureOr<Value> Lowering::auxOf(const ProductParts &product,
                                 const Layout &layout) {
  if (!product.aux)
    return Value();
  if (product.epilogue == Epilogue::sum_lhs ||
      product.epilogue == Epilogue::sum_rhs)
    return flat(product.aux, /*isWritten=*/true);
  FailureOr<Place> place = product.epilogue == Epilogue::gelu_grad
                               ? copies.readable(product.aux, layout)
                               : copies.writable(product.aux, layout);
  if (failed(place))
    return failure();
  return builder.view(product.op->getLoc(), matrices(*layout.of(*place)));
}

/// The elements of `value` side by side, as one dim.
FailureOr<Value> Lowering::flat(Value value, bool isWritten) {
  Layout layout = flatLayout(tensorType(value).getRank());
  FailureOr<Place> place = isWritten ? copies.writable(value, layout)
                                     : copies.readable(value, layout);
  if (failed(place))
    return failure();
  return builder.view(value.getLoc(), *layout.of(*place));
}

LogicalResult Lowering::lowerProduct(const ProductParts &product) {
  Operation *op = product.op;
  // A bias with all dims is a sum that the product is added to, in its place.
  bool addsToSum = product.bias && tensorType(product.bias).getRank() ==
                                       tensorType(product.result).getRank();
  if (addsToSum && failed(placement.takeOver(product.bias, product.result)))
    return failure();
  FailureOr<Destination> destination = sums.destinationOf(product.result);
  if (addsToSum && succeeded(destination))
    destination->accumulate = Accumulate::yes;
  FailureOr<MatmulLayouts> layouts = matmulLayouts(product);
  if (failed(destination) || failed(layouts))
    return failure();
  FailureOr<Place> lhs = copies.readable(product.lhs, layouts->lhs),
                   rhs = copies.readable(product.rhs, layouts->rhs);
  Place dst = copies.writable(*destination, layouts->dst, op->getLoc());
  FailureOr<Value> aux = auxOf(product, layouts->dst);
  FailureOr<Value> bias = product.bias && !addsToSum
                              ? flat(product.bias, /*isWritten=*/false)
                              : Value();
  if (failed(lhs) || failed(rhs) || failed(aux) || failed(bias))
    return failure();
  SmallVector<Value> scales;
  for (Value scale : product.scales) {
    FailureOr<Value> at = view(scale);
    if (failed(at))
      return failure();
    scales.push_back(*at);
  }
  Place a = matrices(*layouts->lhs.of(*lhs)),
        b = matrices(*layouts->rhs.of(*rhs)),
        d = matrices(*layouts->dst.of(dst));
  if (product.epilogue == Epilogue::none && !*bias && scales.empty())
    widen(op->getLoc(), a, b, d);
  auto at = [&](const Place &place) {
    return builder.view(op->getLoc(), place);
  };
  Value lhsView = at(a), rhsView = at(b), dstView = at(d);
  MatmulOp::create(
      builder, op->getLoc(), builder.sourceOf(op), builder.i64(product.flops),
      builder.i64(bytesOfValues(op)),
      AccumulateAttr::get(builder.getContext(), destination->accumulate),
      EpilogueAttr::get(builder.getContext(), product.epilogue), lhsView,
      rhsView, *bias, scales, *aux, dstView);
  return success();
}

SmallVector<Value> Lowering::randomViews(ValueRange random) {
  if (random.empty())
    return {};
  Place place = *placement.of(random[0]); // The three lie side by side.
  place.shape = {3};
  place.strides = {1};
  SmallVector<Value> views = {builder.view(random[0].getLoc(), place)};
  for (Value firstHead : random.drop_front(3))
    views.push_back(builder.view(firstHead.getLoc(), *placement.of(firstHead)));
  return views;
}

FailureOr<Value> Lowering::read(Value value, const Layout &layout) {
  FailureOr<Place> place = copies.readable(value, layout);
  if (failed(place))
    return failure();
  return builder.view(value.getLoc(), *place);
}

FailureOr<Value> Lowering::write(Value value, const Layout &layout) {
  FailureOr<Place> place = copies.writable(value, layout);
  if (failed(place))
    return failure();
  return builder.view(value.getLoc(), *place);
}

/// A view, or out.
#define VIEW_OR_FAIL(name, found)                                              \
  FailureOr<Value> name = found;                                               \
  if (failed(name))                                                            \
    return failure();

/// Where documents begin, or which rows these are: read as one run.
FailureOr<Value> Lowering::runOf(Value numbers) {
  return numbers ? read(numbers, rowsLayout(tensorType(numbers).getRank(), 0))
                 : Value();
}

LogicalResult Lowering::lowerAttention(transformer::AttentionOp op) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  VIEW_OR_FAIL(q, read(op.getQ(), heads));
  VIEW_OR_FAIL(k, read(op.getK(), heads));
  VIEW_OR_FAIL(v, read(op.getV(), heads));
  VIEW_OR_FAIL(documents, runOf(op.getDocuments()));
  VIEW_OR_FAIL(positions, runOf(op.getPositions()));
  VIEW_OR_FAIL(keys, runOf(op.getKeys()));
  VIEW_OR_FAIL(out, write(op.getResult(), heads));
  VIEW_OR_FAIL(lse, write(op.getLse(), sums));
  schedule::AttentionOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), op.getTotalKeysAttr(), *q, *k, *v, *documents,
      *positions, *keys, randomViews(op.getRandom()), *out, *lse);
  return success();
}

LogicalResult Lowering::lowerAttentionGrad(transformer::AttentionGradOp op) {
  Layout heads = separateLayout(4), sums = separateLayout(3);
  VIEW_OR_FAIL(q, read(op.getQ(), heads));
  VIEW_OR_FAIL(k, read(op.getK(), heads));
  VIEW_OR_FAIL(v, read(op.getV(), heads));
  VIEW_OR_FAIL(out, read(op.getResult(), heads));
  VIEW_OR_FAIL(lse, read(op.getLse(), sums));
  VIEW_OR_FAIL(dout, read(op.getGradient(), heads));
  VIEW_OR_FAIL(documents, runOf(op.getDocuments()));
  VIEW_OR_FAIL(positions, runOf(op.getPositions()));
  VIEW_OR_FAIL(keys, runOf(op.getKeys()));
  VIEW_OR_FAIL(dq, write(op.getDq(), heads));
  VIEW_OR_FAIL(dk, write(op.getDk(), heads));
  VIEW_OR_FAIL(dv, write(op.getDv(), heads));
  schedule::AttentionGradOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(op.getFlops()),
      builder.i64(bytesOfValues(op)), op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getDropoutRateAttr(),
      builder.getI32IntegerAttr(randomStream(op.getDropoutName())),
      op.getTotalHeadsAttr(), op.getTotalKeysAttr(), op.getDuplicatedAttr(), *q,
      *k, *v, *out, *lse, *dout, *documents, *positions, *keys,
      randomViews(op.getRandom()), *dq, *dk, *dv);
  return success();
}

Value Lowering::viewOrNone(Value value) {
  return value ? builder.view(value.getLoc(), *placement.of(value)) : Value();
}

/// Ids are one dense run, and rows lie at one stride: those of the table, and
/// one for each id.
LogicalResult Lowering::lowerEmbedding(transformer::EmbeddingOp op) {
  int64_t idDims = tensorType(op.getIds()).getRank(),
          rank = tensorType(op.getResult()).getRank();
  VIEW_OR_FAIL(table, read(op.getTable(), rowsLayout(rank - idDims + 1, 1)));
  VIEW_OR_FAIL(ids, read(op.getIds(), rowsLayout(idDims, 0)));
  VIEW_OR_FAIL(out, write(op.getResult(), rowsLayout(rank, idDims)));
  schedule::EmbeddingOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(0),
      builder.i64(2 * bytesOfType(op.getType())), *table, *ids,
      viewOrNone(op.getFirstRow()), *out);
  return success();
}

LogicalResult Lowering::lowerEmbeddingGrad(transformer::EmbeddingGradOp op) {
  int64_t idDims = tensorType(op.getIds()).getRank(),
          rank = tensorType(op.getGradient()).getRank();
  VIEW_OR_FAIL(ids, read(op.getIds(), rowsLayout(idDims, 0)));
  VIEW_OR_FAIL(gradient, read(op.getGradient(), rowsLayout(rank, idDims)));
  FailureOr<Destination> destination = sums.destinationOf(op.getResult());
  if (failed(destination))
    return failure();
  Layout rows = rowsLayout(rank - idDims + 1, 1);
  Place place = copies.writable(*destination, rows, op.getLoc());
  Value table = builder.view(op.getLoc(), place);
  schedule::EmbeddingGradOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(0),
      builder.i64(3 * bytesOfType(op.getGradient().getType())),
      AccumulateAttr::get(builder.getContext(), destination->accumulate), *ids,
      *gradient, viewOrNone(op.getFirstRow()), table);
  return success();
}

LogicalResult Lowering::lowerRotaryTable(transformer::RotaryTableOp op) {
  SmallVector<Value> views;
  OpBuilder atOnce = OpBuilder::atBlockEnd(&builder.once.getBody().front());
  constexpr StringRef names[] = {"rotary cosine", "rotary sine"};
  for (auto [result, name] : llvm::zip_equal(op->getResults(), names)) {
    placement.set(result,
                  placement.persistent(name, BufferKind::constants,
                                       tensorType(result).getShape(),
                                       tensorType(result).getElementType()));
    views.push_back(
        Placement::view(atOnce, op.getLoc(), *placement.of(result)));
  }
  Value positions;
  if (op.getPositions())
    positions =
        Placement::view(atOnce, op.getLoc(), *placement.of(op.getPositions()));
  schedule::RotaryTableOp::create(
      atOnce, op.getLoc(), builder.sourceOf(op), builder.i64(0),
      builder.i64(bytesOfValues(op)), op.getInverseFrequenciesAttr(),
      op.getScaleAttr(), positions, views[0], views[1]);
  return success();
}

/// Elementwise results are computed in the place of the state, and a gradient's
/// sum is where sums of it go; anything else has no business here.
LogicalResult Lowering::lowerAssign(AssignOp op) {
  FailureOr<Place> value = placement.of(op.getValue());
  if (failed(value))
    return failure();
  Place state = placement.state(op.getKey(), tensorType(op.getValue()));
  bool isReduced = op.getKind() == StateKind::gradient &&
                   gradients.parameterOf(op.getValue()) == op.getName();
  if (value->buffer == state.buffer || isReduced)
    return success();
  return op.emitOpError(
      "assigns a value that lies elsewhere; it is assigned twice, or is itself "
      "a parameter or a part of a tensor");
}

} // namespace meshwork::schedule
