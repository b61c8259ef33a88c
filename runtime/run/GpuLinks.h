// What GPUs move between them, by NCCL.
#pragma once

#include "runtime/device/cuda/Queue.h"
#include "runtime/run/MeasureMachine.h"

namespace meshwork::runtime {

/// A GPU of one rank, among ranks of a mesh of nodes and the ranks in each.
struct RankOnGpu {
  const cuda::Gpu &gpu;
  Transport &host;
  uint32_t rank, nodes, ranksPerNode;
  double timeoutSeconds;
};

/// By all ranks: an all_reduce over each axis that has more than one rank.
absl::Status measureGpuLinks(const RankOnGpu &on,
                             std::optional<MeasuredLink> &withinNode,
                             std::optional<MeasuredLink> &betweenNodes);

} // namespace meshwork::runtime
