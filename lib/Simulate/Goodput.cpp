#include "lib/Simulate/Goodput.h"
#include <algorithm>
#include <cmath>

namespace meshwork::simulate {

/// With failures of mean time M, work that takes T without one takes
/// exp(R / M) M (exp(T / M) - 1), where R is what each failure costs before the
/// work begins anew. R counts `write` too: a failure while a checkpoint is
/// written loses one interval more, which is `write` in the mean.
double goodputOf(const TrainingRun &run, uint64_t steps) {
  double work = static_cast<double>(steps) * run.step,
         lost = run.restart + run.read + run.write,
         taken = std::exp(lost / run.failures) * run.failures *
                 std::expm1((work + run.copy) / run.failures);
  return work / taken;
}

Goodput bestGoodput(const TrainingRun &run) {
  // Rises up to the best number and falls behind it.
  auto least = static_cast<uint64_t>(
      std::clamp(std::ceil(run.write / run.step), 1.0, 0x1p52));
  uint64_t low = least,
           high = std::max(low, static_cast<uint64_t>(std::clamp(
                                    8 * run.failures / run.step, 1.0, 0x1p52)));
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (goodputOf(run, middle) < goodputOf(run, middle + 1))
      low = middle + 1;
    else
      high = middle;
  }
  return {low, goodputOf(run, low)};
}

} // namespace meshwork::simulate
