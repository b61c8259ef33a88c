#include "runtime/device/cpu/MeasurePeak.h"
#include "lib/Plan/Checked.h"
#include "runtime/device/cpu/TimedPlan.h"
#include "runtime/machine/Clock.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr int64_t size = 2048;
constexpr int64_t atLeastNs = 600'000'000;
} // namespace

absl::StatusOr<double> measureMatmulTflops(plan::DType compute,
                                           ThreadTeam &team) {
  TimedPlan plan;
  plan::MatmulT product;
  for (uint32_t *view : {&product.lhs, &product.rhs, &product.dst})
    *view = plan.addTensor(compute, {1, size, size});
  plan.addInstruction(std::move(product));
  MESHWORK_RETURN_IF_ERROR(plan.prepare(team));
  plan.run();
  int64_t best = INT64_MAX;
  for (int64_t start = steadyNs(), now = start; now - start < atLeastNs;) {
    plan.run();
    int64_t end = steadyNs();
    best = std::min(best, end - now);
    now = end;
  }
  return 2.0 * size * size * size /
         static_cast<double>(std::max<int64_t>(best, 1)) / 1e3;
}

} // namespace meshwork::runtime
