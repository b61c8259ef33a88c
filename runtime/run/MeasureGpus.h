// What the GPUs of a run do a second, each and between them.
#pragma once

#include "runtime/device/cuda/MeasureGpu.h"
#include "runtime/run/MeasureMachine.h"

namespace meshwork::runtime {

struct MeasuredGpus {
  std::string name; // "NVIDIA H100 80GB HBM3 (compute capability 9.0)"
  std::string arch; // as target.arch names it
  uint32_t ranks = 0, ranksPerNode = 0;
  cuda::GpuWork work; // the mean of the GPUs
  std::optional<MeasuredLink> withinNode, betweenNodes;
};

/// Takes some ten seconds. One process measures each GPU that it sees, by a
/// thread of its own; processes that a launcher started have a GPU each. All
/// at the same time. Between GPUs NCCL moves data: of one node, and where there
/// are several nodes, of one GPU in each. `deliver` gets the result on the
/// first process alone; what it returns ends all of them. Of `options` only
/// transport and time-out count.
///   failedPrecondition  where a driver, a GPU or a library is missing, GPUs
///                       differ, or nodes have different numbers of ranks
absl::Status
measureGpus(const RunOptions &options,
            absl::FunctionRef<absl::Status(const MeasuredGpus &)> deliver);

} // namespace meshwork::runtime
