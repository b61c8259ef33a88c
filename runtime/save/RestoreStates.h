// States of a run from a checkpoint: whether it is of this model, and into the
// blocks that a rank holds.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/rank/Rank.h"

namespace meshwork::runtime {

/// The error is dataLoss, and says what to do, when the checkpoint does not
/// match the plan. It may have other parameters or other states: the first five
/// missing, extra and reshaped are named. Or `model`, the text of its model,
/// differs from the plan's: the first such line is named. Comments and blank
/// lines do not count.
absl::Status matchCheckpoint(const plan::Plan &plan,
                             const Checkpoint &checkpoint,
                             const std::string &model);

/// The same of the states that `before` leaves, to go on with `plan`.
absl::Status matchPlans(const plan::Plan &plan, const plan::Plan &before);

/// Fills masters, weights and what the optimizer keeps: each rank the blocks it
/// holds, from whichever boxes hold them. A bf16 weight is its master rounded,
/// or the one that was saved where the plan rounds at random. `checkpoint` has
/// matched. Runs on the rank's threads.
absl::Status restoreStates(Rank &rank, const plan::Plan &plan,
                           const Checkpoint &checkpoint);

} // namespace meshwork::runtime
