// What compiler and runtime agree on for GPUs, beside the plan's format.
#pragma once

#include <cstdint>

namespace meshwork::plan {

/// Scratch that a product of cuBLASLt may use: what NVIDIA recommends for GPUs
/// from sm_90 on (cuBLAS documentation, cublasSetWorkspace); algorithms that
/// need more are not considered. A part of Program.workspace_bytes_per_thread.
inline constexpr uint64_t matmulWorkspaceBytes = uint64_t{32} << 20;

// The most that kernels of a GPU take. -transformer-check-device tells a user
// whose model has more; what makes kernels relies on it.

/// Elements of a head: rows of q, k and v lie in shared memory, whole.
inline constexpr int64_t mostHeadElements = 256;
/// Tokens of a sequence that attention sees: its places, and what it adds to
/// them, are i32.
inline constexpr int64_t mostSequence = (int64_t{1} << 30) - 1;
/// Rows, and columns, of an embedding's table: ids are i32.
inline constexpr int64_t mostTableSize = INT32_MAX;

} // namespace meshwork::plan
