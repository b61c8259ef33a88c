// Whether two places share an element.
#include "meshwork/Plan/Apart.h"
#include "passes/schedule/Placement.h"

using namespace mlir;

namespace meshwork::schedule {

/// Elements from the first to past the last, on one rank in one turn.
static int64_t spanOf(const Place &place) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(place.shape, place.strides))
    last += (size - 1) * stride;
  return last + 1;
}

bool mayShareBytes(const Place &a, const Place &b) {
  if (a.buffer != b.buffer)
    return false;
  if (b.offset < a.offset)
    return mayShareBytes(b, a);
  bool moveAlike = a.advances == b.advances && a.shifts == b.shifts;
  if (!moveAlike || a.element != b.element)
    return true;
  int64_t distance = b.offset - a.offset;
  return distance < spanOf(a) &&
         !layout::apart({a.shape, a.strides}, {b.shape, b.strides}, distance);
}

} // namespace meshwork::schedule
