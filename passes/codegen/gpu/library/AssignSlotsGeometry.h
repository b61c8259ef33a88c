// The block that gives tokens their slots, for those who launch it too.
#pragma once

namespace meshwork::assignSlots {

inline constexpr int warps = 32, threads = warps * 32;
/// Choices: those of all threads' tokens are counted in 20 bits.
inline constexpr long long mostOfToken = (1 << 20) / threads - 1;

inline constexpr long long sharedBytes(long long ranks) {
  return (warps * 33 + warps + 2 * 32 + 2 * ranks) * 4;
}

} // namespace meshwork::assignSlots
