// Parts of a whole: a rank's, and those that are set into one.
#include "passes/schedule/LowerToSchedule.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// The slice of a replicated tensor is a view of it, but where the last block
/// would lie beyond the tensor.
LogicalResult Lowering::lowerSlice(mesh::SliceOp op) {
  FailureOr<Place> whole = placement.of(op.getInput());
  if (failed(whole))
    return failure();
  int64_t dim = op.getDim(), all = tensorType(op.getInput()).getDimSize(dim),
          size = tensorType(op.getResult()).getDimSize(dim);
  if (all == size * placement.groupSize(op.getAxes())) {
    gradients.put(op.getInput(), op.getResult(),
                  Placement::block(*whole, dim, size, op.getAxes()));
    return success();
  }
  FailureOr<Place> part = gradients.placeOf(op.getInput(), op.getResult());
  if (failed(part))
    return failure();
  gradients.put(op.getInput(), op.getResult(), *part);
  buckets.flush();
  Layout slab = slabLayout(tensorType(op.getInput()).getRank(), dim);
  FailureOr<Place> from = copies.readable(op.getInput(), slab),
                   to = copies.writable(op.getResult(), slab);
  if (failed(from) || failed(to))
    return failure();
  if (from->buffer == to->buffer) // an instruction's share none
    to = copies.beside(*to, slab, op.getLoc());
  builder.copyBlock(op.getLoc(), "slice", dim, *from,
                    inputs.coordinate(op.getAxes(), all), *to);
  return success();
}

static bool isSame(const Place &a, const Place &b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.shape == b.shape &&
         a.strides == b.strides && a.advances == b.advances &&
         a.shifts == b.shifts;
}

/// A part that could not be made in its place is copied there: one that is in
/// two wholes, or twice in one, or that is itself a part of something else.
LogicalResult Lowering::lowerUnslice(UnsliceOp op) {
  if (failed(gaps.zeroIn(op)))
    return failure();
  Place whole = *placement.of(op.getResult());
  for (auto [part, offset] : llvm::zip_equal(op.getParts(), op.getOffsets())) {
    Place wanted = Placement::part(whole, tensorType(op.getResult()),
                                   op.getDimAttr(), offset, tensorType(part));
    if (failed(copyUnlessThere(op.getLoc(), part, wanted)))
      return failure();
  }
  return success();
}

LogicalResult Lowering::copyUnlessThere(Location loc, Value value,
                                        const Place &wanted) {
  FailureOr<Place> found = placement.of(value);
  if (failed(found))
    return failure();
  if (isSame(*found, wanted))
    return success();
  buckets.flush(); // It may bring the value.
  copies.copy(loc, *found, wanted);
  return success();
}

} // namespace meshwork::schedule
