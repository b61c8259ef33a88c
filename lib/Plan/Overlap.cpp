#include "lib/Plan/Overlap.h"
#include "lib/Plan/SameViews.h"
#include "meshwork/Plan/Apart.h"

namespace meshwork::plan {
bool haveSameShifts(const ViewInfo &a, const ViewInfo &b) {
  if (a.shifts == b.shifts)
    return true;
  if (!a.shifts || !b.shifts || a.shifts->size() != b.shifts->size())
    return false;
  for (uint32_t i = 0; i < a.shifts->size(); ++i) {
    const Shift &x = *a.shifts->Get(i), &y = *b.shifts->Get(i);
    if (x.bytes() != y.bytes() || x.hop() != y.hop() ||
        !sameNumbers(x.axes(), y.axes()))
      return false;
  }
  return true;
}

bool advanceAlike(const ViewInfo &a, const ViewInfo &b) {
  for (size_t i = 0; i < maxRepeats; ++i)
    if ((i < a.advances.size() ? a.advances[i] : 0) !=
        (i < b.advances.size() ? b.advances[i] : 0))
      return false;
  return true;
}

bool isSameView(const ViewInfo &a, const ViewInfo &b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.dtype == b.dtype &&
         a.shape == b.shape && a.strides == b.strides && haveSameShifts(a, b) &&
         advanceAlike(a, b);
}

bool mayShareBytes(const ViewInfo &a, const ViewInfo &b) {
  if (a.buffer != b.buffer)
    return false;
  if (b.offset < a.offset)
    return mayShareBytes(b, a);
  if (!advanceAlike(a, b))
    return true;
  if (!haveSameShifts(a, b))
    return b.offset < a.offset + a.reach + a.spanBytes &&
           a.offset < b.offset + b.reach + b.spanBytes;
  if (b.offset >= a.offset + a.spanBytes)
    return false;
  if (a.dtype != b.dtype)
    return true;
  uint64_t distance = (b.offset - a.offset) / sizeOf(a.dtype);
  return !layout::apart({a.shape, a.strides}, {b.shape, b.strides},
                        static_cast<int64_t>(distance));
}

} // namespace meshwork::plan
