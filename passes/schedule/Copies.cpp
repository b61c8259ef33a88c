// Copies between where a tensor lies and where an instruction can use it.
#include "passes/schedule/Copies.h"
#include "dialects/transformer/Facts.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

FailureOr<Place> Copies::readable(Value value, const Layout &layout) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  if (layout.of(*place))
    return place;
  // Shared by its readers, but not kept from one pass to the next.
  auto [copied, isNew] = known.try_emplace(
      {value.getAsOpaquePointer(), layout.order(), isBackward(current)});
  if (isNew) {
    copied->second = placement.buffers.temporary(*place, layout.order());
    copy(value.getLoc(), *place, copied->second);
  }
  return copied->second;
}

/// What is added to is copied there first, so it must be there: a sum that the
/// first microbatch would set is zero from the start of the step instead.
Place Copies::writable(Destination &destination, const Layout &layout,
                       Location loc) {
  if (layout.of(destination.place))
    return destination.place;
  sums.neverSet(destination);
  Place near = beside(destination.place, layout, loc);
  if (destination.accumulate == Accumulate::yes)
    copy(loc, destination.place, near);
  return near;
}

FailureOr<Place> Copies::writable(Value value, const Layout &layout) {
  FailureOr<Place> place = placement.of(value);
  if (failed(place))
    return failure();
  Destination destination{*place, Accumulate::no};
  return writable(destination, layout, value.getLoc());
}

Place Copies::beside(const Place &place, const Layout &layout, Location loc) {
  Place near = placement.buffers.temporary(place, layout.order());
  backs.push_back({loc, near, place});
  return near;
}

void Copies::copyBack() {
  for (const Back &back : std::exchange(backs, {}))
    copy(back.loc, back.from, back.to);
}

/// Within one buffer by way of another: an instruction's share none.
void Copies::copy(Location loc, const Place &from, const Place &to) {
  if (from.buffer != to.buffer)
    return copyLoopsFrom(loc, from, to, copyLoops(from, to));
  Place between = placement.buffers.temporary(
      to, separateLayout(static_cast<int64_t>(to.shape.size())).order());
  copy(loc, from, between);
  copy(loc, between, to);
}

/// `place` as these loops go through it.
static Place along(Place place, ArrayRef<CopyLoop> loops,
                   int64_t CopyLoop::*stride) {
  place.shape.clear();
  place.strides.clear();
  for (const CopyLoop &loop : loops) {
    place.shape.push_back(loop.size);
    place.strides.push_back(loop.*stride);
  }
  return place;
}

/// An instruction copies three loops; of more, it is repeated over the
/// shortest.
void Copies::copyLoopsFrom(Location loc, Place from, Place to,
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
  Place zero = inputs.coordinate(builder.getArrayAttr({}), 1);
  builder.copyBlock(loc, "rearrange", /*dim=*/1,
                    along(from, loops, &CopyLoop::from), zero,
                    along(to, loops, &CopyLoop::to));
}

} // namespace meshwork::schedule
