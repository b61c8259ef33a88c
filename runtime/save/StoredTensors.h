// What a checkpoint says of a plan's tensors, but for where they lie in files.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/checkpoint/Manifest.h"

namespace meshwork::runtime {

/// In the order of plan::savedTensors; no boxes.
std::vector<StoredTensor> storedTensors(const plan::Plan &plan);

} // namespace meshwork::runtime
