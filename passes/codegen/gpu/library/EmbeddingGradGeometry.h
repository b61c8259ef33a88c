// How the gradient of an embedding is spread over blocks, for the device
// function and for the compiler that launches it.
#pragma once

namespace meshwork::embeddingGrad {

inline constexpr unsigned warps = 8, threads = 32 * warps;
/// Places among the ids that one warp can list at a time.
inline constexpr unsigned capacity = 128;
/// Rows of a block at most: what is known of each lies in shared memory.
inline constexpr long long maxRows = 512;
/// On a multiprocessor, at least: leaves a thread 128 registers.
inline constexpr long long blocksAtOnce = 2;
/// Four for each multiprocessor of a large GPU.
inline constexpr long long wantedBlocks = 528;

constexpr long long blocksFor(long long rows) {
  long long needed = (rows + maxRows - 1) / maxRows,
            wanted = rows < wantedBlocks ? rows : wantedBlocks;
  return needed > wanted ? needed : wanted;
}
/// Of a block that has `rows` rows.
constexpr unsigned sharedBytes(long long rows) {
  return static_cast<unsigned>(4 * (warps + 3 * warps * capacity + rows));
}

} // namespace meshwork::embeddingGrad
