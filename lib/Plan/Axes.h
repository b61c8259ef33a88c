// Lists of mesh axes as a plan names them: groups, shifts, shardings.
#pragma once

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

using AxisIndices = flatbuffers::Vector<uint32_t>;

using Layouts = flatbuffers::Vector<Layout>;

/// Each is an axis of the plan's mesh and named once. No list is fine.
absl::Status checkAxes(const Plan &plan, const AxisIndices *axes);
/// The same of axes that split a dim: as many layouts, all known, or none.
absl::Status checkSplit(const Plan &plan, const AxisIndices *axes,
                        const Layouts *layouts);

/// Ranks that differ only along `axes`, which have been checked; 1 for none.
uint64_t groupSize(const Plan &plan, const AxisIndices *axes);

} // namespace meshwork::plan
