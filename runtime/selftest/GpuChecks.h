// What ranks with a GPU each find on their GPUs and between them, by NCCL.
#pragma once

#include "runtime/rank/Processes.h"
#include "runtime/selftest/GpuTransport.h"
#include "runtime/selftest/MoveChecks.h"

namespace meshwork::runtime {

/// The first GPU of this process.
struct GpuHere {
  std::string name; // "NVIDIA H200 (compute capability 9.0)"; "": none
  std::string arch; // that code is to be made for: "sm_90a"
};
GpuHere gpuHere();

struct GpusFound {
  std::string name;           // of the first host's first; "": there is none
  std::string notTried;       // why nothing below is there; "": it is
  std::vector<GpuRates> work; // by rank
  MovesFound moves;

  std::vector<std::string> slow() const;
};

/// By all processes: the GPUs of the ranks of this one. Nothing where nobody
/// has GPUs, or where some rank has none of its own, and then `why`, on all.
absl::StatusOr<std::vector<int>> agreeOnGpus(Processes &processes,
                                             uint32_t ranks,
                                             const RunOptions &options,
                                             std::string &why);

/// By all ranks together, with the same result on each.
absl::StatusOr<GpusFound> checkGpu(Transport &host, uint32_t rank, int ordinal,
                                   const MovesToCheck &what,
                                   double timeoutSeconds);

} // namespace meshwork::runtime
