// Whether views touch the same bytes.
#pragma once

#include "lib/Plan/Views.h"

namespace meshwork::plan {

/// The same elements in the same order on every rank.
bool isSameView(const ViewInfo &a, const ViewInfo &b);

/// The same list of shifts, so that one rank moves both views alike.
bool haveSameShifts(const ViewInfo &a, const ViewInfo &b);
/// Each turn finds both at one distance.
bool advanceAlike(const ViewInfo &a, const ViewInfo &b);

/// False only when no rank finds a byte in both, in one turn of the repeats
/// around them. Views of different buffers
/// that live at one time share none (checkOverlaps). Exact for boxes of one
/// grid, such as slices of a tensor along any dims; true when in doubt.
bool mayShareBytes(const ViewInfo &a, const ViewInfo &b);

} // namespace meshwork::plan
