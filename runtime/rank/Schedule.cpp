#include "runtime/rank/Schedule.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace meshwork::runtime {

double learningRateAt(const LearningRate &schedule, uint64_t step) {
  double at = static_cast<double>(step);
  double warmup = static_cast<double>(schedule.warmupSteps);
  if (step < schedule.warmupSteps)
    return schedule.rate * (at + 1) / warmup;
  if (schedule.shape == LearningRate::Shape::constant)
    return schedule.rate;
  bool isStable = schedule.shape == LearningRate::Shape::warmupStableDecay;
  double begin =
      warmup + (isStable ? static_cast<double>(schedule.stableSteps) : 0);
  if (at < begin)
    return schedule.rate;
  double span = static_cast<double>(schedule.decaySteps) - 1 - begin;
  double part = span > 0 ? std::min(1.0, (at - begin) / span) : 1.0;
  double left = schedule.shape == LearningRate::Shape::cosine
                    ? 0.5 * (1 + std::cos(std::numbers::pi * part))
                    : 1 - part;
  return schedule.minimum + left * (schedule.rate - schedule.minimum);
}

} // namespace meshwork::runtime
