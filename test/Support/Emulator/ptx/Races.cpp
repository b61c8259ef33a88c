#include "test/Support/Emulator/ptx/Races.h"

#include <algorithm>

namespace meshwork::ptx {

void Races::reset(uint32_t bytes, unsigned warps) {
  numWarps = warps;
  now = 1;
  known = {};
  words.assign(enabled() ? bytes / 4 + 1 : 0, Word{});
}

void Races::follow(uint32_t warps, uint32_t to) {
  std::array<uint32_t, 32> joined{};
  for (unsigned w = 0; w < numWarps; ++w) {
    if (!(warps >> w & 1))
      continue;
    for (unsigned v = 0; v < numWarps; ++v)
      joined[v] = std::max(joined[v], known[w][v]);
    joined[w] = now + 1;
  }
  ++now;
  for (unsigned w = 0; w < numWarps; ++w)
    if (to >> w & 1)
      for (unsigned v = 0; v < numWarps; ++v)
        known[w][v] = std::max(known[w][v], joined[v]);
}

void Races::synchronize(uint32_t warpMask) { follow(warpMask, warpMask); }

} // namespace meshwork::ptx
