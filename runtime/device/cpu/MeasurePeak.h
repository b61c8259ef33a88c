// The matmul rate this machine reaches, for model flops utilization.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include "runtime/base/ThreadTeam.h"

namespace meshwork::runtime {

/// Teraflops of a 2048 x 2048 x 2048 matmul with operands of type `compute` on
/// `team`: the best of a few runs, about a second. Called by all ranks at the
/// same time, since cores share power and memory.
absl::StatusOr<double> measureMatmulTflops(plan::DType compute,
                                           ThreadTeam &team);

} // namespace meshwork::runtime
