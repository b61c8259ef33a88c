// Parts of a whole: a rank's, and those that are set into one.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// The slice of a replicated tensor is a view of it, but where the last block
/// would lie beyond the tensor.
static LogicalResult emit(mesh::SliceOp op, Lowering &to) {
  FailureOr<Place> whole = to.placement.of(op.getInput());
  if (failed(whole))
    return failure();
  int64_t dim = op.getDim(), all = tensorType(op.getInput()).getDimSize(dim),
          size = tensorType(op.getResult()).getDimSize(dim);
  if (all == size * to.placement.groupSize(op.getAxes())) {
    to.gradients.put(op.getInput(), op.getResult(),
                     blockOf(*whole, dim, size, op.getAxes()));
    return success();
  }
  FailureOr<Place> part = to.gradients.placeOf(op.getInput(), op.getResult());
  if (failed(part))
    return failure();
  to.gradients.put(op.getInput(), op.getResult(), *part);
  to.buckets.flush();
  Layout slab = slabLayout(tensorType(op.getInput()).getRank(), dim);
  FailureOr<Place> from = to.copies.readable(op.getInput(), slab),
                   block = to.copies.writable(op.getResult(), slab);
  if (failed(from) || failed(block))
    return failure();
  if (from->buffer == block->buffer) // an instruction's share none
    block = to.copies.beside(*block, slab, op.getLoc());
  to.builder.copyBlock(op.getLoc(), "slice", dim, *from,
                       to.inputs.coordinate(op.getAxes(), all), *block);
  return success();
}

/// A part that could not be made in its place is copied there. It is in two
/// wholes, or twice in one, or is itself a part of something else.
static LogicalResult emit(UnsliceOp op, Lowering &to) {
  if (failed(to.gaps.zeroIn(op)))
    return failure();
  Place whole = *to.placement.of(op.getResult());
  for (auto [part, offset] : llvm::zip_equal(op.getParts(), op.getOffsets())) {
    Place wanted = partOf(whole, tensorType(op.getResult()), op.getDimAttr(),
                          offset, tensorType(part));
    if (failed(copyUnlessThere(op.getLoc(), part, wanted, to)))
      return failure();
  }
  return success();
}

static LogicalResult emit(MergeOp op, Lowering &to) {
  FailureOr<Place> whole = to.placement.of(op.getResult());
  if (failed(whole))
    return failure();
  if (op.getGradient())
    to.gradients.put(*op.getGradient(), op.getResult(), *whole);
  return copyUnlessThere(
      op.getLoc(), op.getInput(),
      splitOf(*whole, op.getType(), op.getDimAttr(), tensorType(op.getInput())),
      to);
}

LogicalResult copyUnlessThere(Location loc, Value value, const Place &wanted,
                              Lowering &to) {
  FailureOr<Place> found = to.placement.of(value);
  if (failed(found))
    return failure();
  if (*found == wanted)
    return success();
  to.buckets.flush(); // It may bring the value.
  to.copies.copy(loc, *found, wanted);
  return success();
}

void attachParts(MLIRContext *context) {
  attach<Cutting, mesh::SliceOp>(context);
  attach<Joining, UnsliceOp, MergeOp>(context);
}

} // namespace meshwork::schedule
