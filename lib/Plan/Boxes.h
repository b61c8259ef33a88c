// Which boxes of the states of a model each rank writes into a checkpoint.
//
//   std::vector<SavedTensor> tensors = savedTensors(plan);
//   for (const OwnBox &box : ownBoxes(plan, tensors, rank))
//     ... tensors[box.tensor].states[box.state] ...
//
// Ranks that hold the same elements share them: together all ranks write each
// element once. Every rank finds its own boxes without asking another one.
#pragma once

#include "lib/Plan/SavedTensors.h"
#include "lib/Plan/Shards.h"

namespace meshwork::plan {

/// A box that this rank writes, of its own part.
struct OwnBox {
  uint32_t tensor, state; // of savedTensors, SavedTensor::states
  uint32_t view;          // of this rank's program
  Block block;
  std::vector<int64_t> shape; // of the part
};

/// In the order of tensors and states. Bytes are shared to within an index of
/// the dim that a box is cut along. The plan has been checked.
std::vector<OwnBox> ownBoxes(const Plan &plan,
                             const std::vector<SavedTensor> &tensors,
                             uint32_t rank);

/// Of all boxes of `rank`.
uint64_t savedBytes(const Plan &plan, uint32_t rank);
/// Of the rank that saves most, to within the indices that boxes are cut at.
uint64_t mostSavedBytes(const Plan &plan);

} // namespace meshwork::plan
