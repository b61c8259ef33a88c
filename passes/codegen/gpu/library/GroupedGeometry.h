// Shapes of the blocks that compute products of experts, for those who launch
// them too.
#pragma once

namespace meshwork::grouped {

inline constexpr int threads = 128;
/// Rows and columns of a block's tile.
inline constexpr int tileSize = 128;
/// Places of the sum in shared memory at once, and how many times that.
inline constexpr int mmaDepth = 32, mmaStages = 4;
inline constexpr int plainDepth = 16, plainStages = 2;
/// From the start of a place of the sum to the next one's: no two of a warp's
/// writes meet in a bank.
inline constexpr int plainLine = tileSize + 4;

inline constexpr int sharedBytes(int elementBytes) {
  return elementBytes == 2 ? mmaStages * 2 * tileSize * mmaDepth * 2
                           : plainStages * 2 * plainLine * plainDepth * 4;
}

} // namespace meshwork::grouped
