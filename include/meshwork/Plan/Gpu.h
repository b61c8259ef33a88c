// What compiler and runtime agree on for GPUs, beside the plan's format.
#pragma once

#include <cstdint>

namespace meshwork::plan {

/// Scratch that a product of cuBLASLt may use: what NVIDIA recommends for GPUs
/// from sm_90 on (cuBLAS documentation, cublasSetWorkspace); algorithms that
/// need more are not considered. A part of Program.workspace_bytes_per_thread.
inline constexpr uint64_t matmulWorkspaceBytes = uint64_t{32} << 20;

} // namespace meshwork::plan
