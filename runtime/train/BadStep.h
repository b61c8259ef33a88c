// A step whose loss or gradient norm is not finite.
#pragma once

#include "runtime/rank/Rank.h"

namespace meshwork::runtime {

/// The error is dataLoss. It says what was found, what ranks did about it
/// (`consequence`), and where it first appears: in a weight, or in what an
/// instruction wrote. The step is run again to find the instruction. All ranks
/// call it after `look`, before any has updated its weights; all get the same.
/// Other errors are those of running.
absl::Status explainBadStep(Rank &rank, Transport &transport, uint64_t step,
                            double learningRate, const Rank::Look &look,
                            const char *consequence);

} // namespace meshwork::runtime
