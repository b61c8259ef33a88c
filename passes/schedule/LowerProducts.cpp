// Products: an einsum as one matrix product, with its epilogue.
#include "dialects/mesh/Chunk.h"
#include "dialects/transformer/Facts.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// The elements of `value` side by side, as one dim.
static FailureOr<Value> flat(Value value, bool isWritten, Lowering &to) {
  Layout layout = flatLayout(tensorType(value).getRank());
  FailureOr<Place> place = isWritten ? to.copies.writable(value, layout)
                                     : to.copies.readable(value, layout);
  if (failed(place))
    return failure();
  return to.builder.view(value.getLoc(), *layout.of(*place));
}

/// The view of what the epilogue reads or writes, if there is one.
static FailureOr<Value> auxOf(const ProductParts &product, const Layout &layout,
                              Lowering &to) {
  if (!product.aux)
    return Value();
  if (product.epilogue == Epilogue::sum_lhs ||
      product.epilogue == Epilogue::sum_rhs)
    return flat(product.aux, /*isWritten=*/true, to);
  FailureOr<Place> place = product.epilogue == Epilogue::gelu_grad
                               ? to.copies.readable(product.aux, layout)
                               : to.copies.writable(product.aux, layout);
  if (failed(place))
    return failure();
  return to.builder.view(product.op->getLoc(), matrices(*layout.of(*place)));
}

/// A bias with all dims is a sum that the product is added to, in its place.
static bool addsToSum(const ProductParts &product) {
  return product.bias && tensorType(product.bias).getRank() ==
                             tensorType(product.result).getRank();
}

static FailureOr<Destination> destinationOf(const ProductParts &product,
                                            Lowering &to) {
  if (!addsToSum(product))
    return to.sums.destinationOf(product.result);
  if (failed(to.placement.takeOver(product.bias, product.result)))
    return failure();
  FailureOr<Destination> destination = to.sums.destinationOf(product.result);
  if (succeeded(destination))
    destination->accumulate = Accumulate::yes;
  return destination;
}

LogicalResult emit(const ProductParts &product, Lowering &to) {
  Location loc = product.op->getLoc();
  FailureOr<Destination> destination = destinationOf(product, to);
  FailureOr<MatmulLayouts> layouts = matmulLayouts(product);
  if (failed(destination) || failed(layouts))
    return failure();
  FailureOr<Place> lhs = to.placement.of(product.lhs);
  if (failed(lhs))
    return failure();
  if (mesh::isChunk(product.op) && product.epilogue == Epilogue::none &&
      !product.bias)
    layouts = withRowsInBatch(*layouts, *lhs, destination->place);
  lhs = to.copies.readable(product.lhs, layouts->lhs);
  FailureOr<Place> rhs = to.copies.readable(product.rhs, layouts->rhs);
  Place dst = to.copies.writable(*destination, layouts->dst, loc);
  FailureOr<Value> aux = auxOf(product, layouts->dst, to),
                   bias = product.bias && !addsToSum(product)
                              ? flat(product.bias, /*isWritten=*/false, to)
                              : Value();
  Views views(to);
  auto scales = llvm::map_to_vector(
      product.scales, [&](Value scale) { return views.of(scale); });
  if (failed(lhs) || failed(rhs) || failed(aux) || failed(bias) ||
      !views.areComplete())
    return failure();
  Place a = matrices(*layouts->lhs.of(*lhs)),
        b = matrices(*layouts->rhs.of(*rhs)),
        d = matrices(*layouts->dst.of(dst));
  bool isShared = b.shape[0] < d.shape[0]; // by the whole batch
  if (product.epilogue == Epilogue::none && !*bias && scales.empty() &&
      !isShared)
    widen(loc, a, b, d, to);
  ProgramBuilder &builder = to.builder;
  Value lhsView = builder.view(loc, a), rhsView = builder.view(loc, b),
        dstView = builder.view(loc, d);
  MatmulOp::create(
      builder, loc, builder.sourceOf(product.op), builder.i64(product.flops),
      builder.i64(bytesOfValues(product.op)),
      AccumulateAttr::get(builder.getContext(), destination->accumulate),
      EpilogueAttr::get(builder.getContext(), product.epilogue), lhsView,
      rhsView, *bias, scales, *aux, dstView);
  return success();
}

} // namespace meshwork::schedule
