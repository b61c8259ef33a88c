// Copies between where a tensor lies and where an instruction can use it, and
// parts that are set into a whole.
#include "dialects/transformer/Facts.h"
#include "passes/schedule/LowerToSchedule.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

FailureOr<Place> Lowering::readable(Value value, const Layout &layout) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  if (layout.of(*place))
    return place;
  // Shared by its readers, but not kept from one pass to the next.
  auto [known, isNew] = copies.try_emplace(
      {value.getAsOpaquePointer(), layout.order(), isBackward(current)});
  if (isNew) {
    known->second = placement.temporary(*place, layout.order());
    copy(value.getLoc(), *place, known->second);
  }
  return known->second;
}

/// What is added to is copied there first, so it must be there: a sum that the
/// first microbatch would set is zero from the start of the step instead.
Place Lowering::writable(Destination &destination, const Layout &layout,
                         Location loc) {
  if (layout.of(destination.place))
    return destination.place;
  if (destination.accumulate == Accumulate::after_first) {
    zeroAtStepStart(destination.place, "zero gradient " + destination.key.name);
    zeroed.insert(destination.key);
    destination.accumulate = Accumulate::yes;
  }
  Place near = beside(destination.place, layout, loc);
  if (destination.accumulate == Accumulate::yes)
    copy(loc, destination.place, near);
  return near;
}

Place Lowering::beside(const Place &place, const Layout &layout, Location loc) {
  Place near = placement.temporary(place, layout.order());
  backs.push_back({loc, near, place});
  return near;
}

FailureOr<Place> Lowering::writable(Value value, const Layout &layout) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  Destination destination{*place, Accumulate::no};
  return writable(destination, layout, value.getLoc());
}

FailureOr<Value> Lowering::read(Value value, const Layout &layout) {
  FailureOr<Place> place = readable(value, layout);
  if (failed(place))
    return failure();
  return Placement::view(builder, value.getLoc(), *place);
}

FailureOr<Value> Lowering::write(Value value, const Layout &layout) {
  FailureOr<Place> place = writable(value, layout);
  if (failed(place))
    return failure();
  return Placement::view(builder, value.getLoc(), *place);
}

void Lowering::copyBack() {
  for (const Back &back : std::exchange(backs, {}))
    copy(back.loc, back.from, back.to);
}

/// Within one buffer by way of another: an instruction's share none.
void Lowering::copy(Location loc, const Place &from, const Place &to) {
  if (from.buffer != to.buffer)
    return copyLoopsFrom(loc, from, to, copyLoops(from, to));
  Place between = placement.temporary(
      to, separateLayout(static_cast<int64_t>(to.shape.size())).order());
  copy(loc, from, between);
  copy(loc, between, to);
}

/// An instruction copies three loops; of more, it is repeated over the
/// shortest.
void Lowering::copyLoopsFrom(Location loc, Place from, Place to,
                             SmallVector<CopyLoop> loops) {
  constexpr size_t atOnce = 3;
  if (loops.size() > atOnce) {
    auto *least = llvm::min_element(
        loops, [](const auto &a, const auto &b) { return a.size < b.size; });
    CopyLoop outer = *least;
    loops.erase(least);
    for (int64_t i = 0; i < outer.size; ++i) {
      copyLoopsFrom(loc, from, to, loops);
      from.offset += outer.from;
      to.offset += outer.to;
    }
    return;
  }
  while (loops.size() < atOnce) // one iteration may have any stride
    loops.insert(loops.begin(), {1, 1, 1});
  for (auto [place, stride] :
       {std::pair(&from, &CopyLoop::from), std::pair(&to, &CopyLoop::to)}) {
    place->shape.clear();
    place->strides.clear();
    for (const CopyLoop &loop : loops) {
      place->shape.push_back(loop.size);
      place->strides.push_back(loop.*stride);
    }
  }
  int64_t bytes = from.element.getIntOrFloatBitWidth() / 8;
  for (int64_t size : from.shape)
    bytes *= size;
  Value zero = Placement::view(
      builder, loc,
      numberOfPart(InputKind::coordinate, builder.getArrayAttr({}), 1));
  Value source = Placement::view(builder, loc, from),
        target = Placement::view(builder, loc, to);
  CopyBlockOp::create(builder, loc, builder.getStringAttr("rearrange"), i64(0),
                      i64(2 * bytes), i64(1), source, zero, target);
}

//===-- Parts of a whole ----------------------------------------------------//

static bool hasGaps(UnsliceOp op) {
  int64_t covered = 0;
  for (Value part : op.getParts()) {
    covered += tensorType(part).getNumElements();
    if (auto inner = part.getDefiningOp<UnsliceOp>(); inner && hasGaps(inner))
      return true;
  }
  return covered != tensorType(op.getResult()).getNumElements();
}

/// Parts are written where they lie; before the first of them, what no part
/// covers is set to zero.
LogicalResult Lowering::zeroAround(Operation *producer) {
  for (Operation *user : producer->getUsers())
    if (auto op = dyn_cast<UnsliceOp>(user); op && failed(clear(op)))
      return failure();
  return success();
}

/// With the whole that it is a part of, and that one's parts.
LogicalResult Lowering::clear(UnsliceOp op) {
  FailureOr<Place> place = placement.of(op.getResult());
  if (failed(place))
    return failure();
  for (Operation *user : op->getUsers())
    if (auto outer = dyn_cast<UnsliceOp>(user)) {
      FailureOr<Place> around = placement.of(outer.getResult());
      if (failed(around))
        return failure();
      if (around->buffer == place->buffer)
        return clear(outer);
    }
  if (!cleared.insert(op).second || !hasGaps(op))
    return success();
  zero(op.getLoc(), *place, copyLoops(*place, *place));
  return success();
}

/// An instruction fills dense rows at one stride; of more loops it is repeated
/// over the outer ones.
void Lowering::zero(Location loc, Place place, ArrayRef<CopyLoop> loops) {
  bool isDense = !loops.empty() && loops.back().to == 1;
  ArrayRef<CopyLoop> outer = isDense ? loops.drop_back() : loops;
  if (outer.size() > 1) {
    for (int64_t i = 0; i < outer.front().size; ++i) {
      zero(loc, place, loops.drop_front());
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
  int64_t bytes = place.element.getIntOrFloatBitWidth() / 8;
  for (int64_t size : place.shape)
    bytes *= size;
  Value view = Placement::view(builder, loc, place);
  FillOp::create(builder, loc, builder.getStringAttr("zero around parts"),
                 i64(0), i64(bytes), builder.getF32FloatAttr(0), view);
}

static bool isSame(const Place &a, const Place &b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.shape == b.shape &&
         a.strides == b.strides && a.advances == b.advances &&
         a.shifts.size() == b.shifts.size() &&
         llvm::equal(a.shifts, b.shifts,
                     [](const PlaceShift &x, const PlaceShift &y) {
                       return x.axes == y.axes && x.elements == y.elements;
                     });
}

/// A part that could not be made in its place is copied there: one that is in
/// two wholes, or twice in one, or that is itself a part of something else.
LogicalResult Lowering::lowerUnslice(UnsliceOp op) {
  if (failed(clear(op)))
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
  flush(); // It may bring the value.
  copy(loc, *found, wanted);
  return success();
}

} // namespace meshwork::schedule
