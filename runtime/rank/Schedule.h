// Learning rate as a function of the step.
#pragma once

#include "meshwork/Runtime/Run.h"

namespace meshwork::runtime {

/// Rate of step `step`, counted from 0. During warmup it rises in a line and
/// reaches `rate` with the last warmup step. Then it is constant, or falls to
/// `minimum` at the last of `decaySteps` steps, and stays there. It falls as a
/// line or as half a cosine wave (Loshchilov and Hutter, ICLR 2017). As
/// warmupStableDecay (Hu et al., arXiv 2404.06395) it is constant for
/// `stableSteps`, then falls as a line.
double learningRateAt(const LearningRate &schedule, uint64_t step);

} // namespace meshwork::runtime
