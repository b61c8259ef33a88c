#include "lib/Plan/Axes.h"
#include "lib/Plan/Checked.h"

namespace meshwork::plan {

absl::Status checkAxes(const Plan &plan, const AxisIndices *axes) {
  uint32_t seen = 0;
  for (uint32_t i = 0; axes && i < axes->size(); ++i) {
    uint32_t axis = axes->Get(i);
    if (axis >= plan.mesh()->size() || (seen >> axis & 1))
      return bad("axis ", axis, " is not one of ", plan.mesh()->size(),
                 " mesh axes, or is named twice");
    seen |= 1u << axis;
  }
  return absl::OkStatus();
}

absl::Status checkSplit(const Plan &plan, const AxisIndices *axes,
                        const Layouts *layouts) {
  MESHWORK_RETURN_IF_ERROR(checkAxes(plan, axes));
  uint32_t numLayouts = layouts ? layouts->size() : 0,
           numAxes = axes ? axes->size() : 0;
  if (numLayouts != 0 && numLayouts != numAxes)
    return bad("found ", numLayouts,
               " layouts, expected none or one for each of ", numAxes, " axes");
  for (uint32_t i = 0; i < numLayouts; ++i)
    if (layouts->Get(i) > Layout::MAX)
      return bad("unknown layout ", static_cast<int>(layouts->Get(i)));
  return absl::OkStatus();
}

uint64_t groupSize(const Plan &plan, const AxisIndices *axes) {
  uint64_t size = 1;
  for (uint32_t i = 0; axes && i < axes->size(); ++i)
    size *= plan.mesh()->Get(axes->Get(i))->size();
  return size;
}

} // namespace meshwork::plan
