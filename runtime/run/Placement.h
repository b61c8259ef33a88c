// Where each rank of a run is: its host, and there its cores or its GPU.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/comm/Mesh.h"
#include "runtime/machine/Executor.h"
#include "runtime/rank/Processes.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// By rank; of a device "GPU 2 (NVIDIA H200)", "cores 0-3", "2 threads".
struct Placement {
  std::vector<std::string> hosts, devices;
};

/// By all processes, each of which has the ranks with threads in `cores`.
absl::StatusOr<Placement> placementOf(const Processes &processes,
                                      const Device &device,
                                      const std::vector<CoreShare> &cores);

/// A line for each rank, and one for each axis of the mesh that tells whether
/// its groups have ranks on several hosts.
std::string textOf(const plan::Plan &plan, const Placement &placement);

} // namespace meshwork::runtime
