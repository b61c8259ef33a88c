// States of a run from a checkpoint: whether it is of this model, and into the
// blocks that a rank holds.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/rank/Rank.h"

namespace meshwork::runtime {

/// dataLoss that says what to do when the checkpoint has other parameters or
/// other states than the plan (the first five missing, extra and reshaped), or
/// `model`, the text of its model, differs from the plan's in more than
/// comments and blank lines (the first line that does).
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
