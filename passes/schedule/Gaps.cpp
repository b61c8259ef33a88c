// Zeros where no part of a whole lies.
#include "passes/schedule/Gaps.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static bool hasGaps(UnsliceOp op) {
  int64_t covered = 0;
  for (Value part : op.getParts()) {
    covered += tensorType(part).getNumElements();
    if (auto inner = part.getDefiningOp<UnsliceOp>(); inner && hasGaps(inner))
      return true;
  }
  return covered != tensorType(op.getResult()).getNumElements();
}

LogicalResult Gaps::zeroAround(Operation *producer) {
  for (Operation *user : producer->getUsers())
    if (auto op = dyn_cast<UnsliceOp>(user); op && failed(zeroIn(op)))
      return failure();
  return success();
}

LogicalResult Gaps::zeroIn(UnsliceOp op) {
  FailureOr<Place> place = placement.of(op.getResult());
  if (failed(place))
    return failure();
  for (Operation *user : op->getUsers())
    if (auto outer = dyn_cast<UnsliceOp>(user)) {
      FailureOr<Place> around = placement.of(outer.getResult());
      if (failed(around))
        return failure();
      if (around->buffer == place->buffer)
        return zeroIn(outer);
    }
  if (zeroed.insert(op).second && hasGaps(op))
    fill(op.getLoc(), *place, copyLoops(*place, *place));
  return success();
}

/// An instruction fills dense rows at one stride; of more loops it is repeated
/// over the outer ones.
void Gaps::fill(Location loc, Place place, ArrayRef<CopyLoop> loops) {
  bool isDense = !loops.empty() && loops.back().to == 1;
  ArrayRef<CopyLoop> outer = isDense ? loops.drop_back() : loops;
  if (outer.size() > 1) {
    for (int64_t i = 0; i < outer.front().size; ++i) {
      fill(loc, place, loops.drop_front());
      place.offset += outer.front().to;
    }
    return;
  }
  place.shape = {isDense ? loops.back().size : 1};
  place.strides = {1};
  if (!outer.empty()) {
    place.shape.insert(place.shape.begin(), outer.front().size);
    place.strides.insert(place.strides.begin(), outer.front().to);
  }
  builder.fill(loc, "zero around parts", place);
}

} // namespace meshwork::schedule
