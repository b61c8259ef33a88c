// The block that gives tokens their slots, for those who launch it too.
#pragma once

namespace meshwork::assignSlots {

inline constexpr int warps = 32, threads = warps * 32;

/// Of ranks, whose number is that of all counts of a list.
inline constexpr long long sharedBytes(long long ranks) {
  return (warps * 33 + warps + ranks) * 4;
}

} // namespace meshwork::assignSlots
