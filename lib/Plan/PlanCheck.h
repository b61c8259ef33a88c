// What a plan must mean, beyond its checksum and its structure. After this
// every index, size and shape in the plan may be used without another check.
#pragma once

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

/// Checks a structurally valid plan; dataLoss names the program, the
/// instruction or buffer, what was found and what was expected. Takes time
/// proportional to the plan (n log n in buffers), and for several programs also
/// to coordinates along program_axes times collectives, whatever the ranks.
/// `rehearsed`, if given: the ranks that stood for all of the plan's when
/// collectives were rehearsed; 0 where one program meets itself.
absl::Status checkPlan(const Plan &plan, uint64_t *rehearsed = nullptr);

} // namespace meshwork::plan
