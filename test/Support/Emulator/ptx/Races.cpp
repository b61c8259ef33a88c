#include "test/Support/Emulator/ptx/Races.h"

#include <algorithm>

namespace meshwork::ptx {

void Races::reset(uint32_t bytes, unsigned warps) {
  numWarps = warps;
  now = 1;
  known = {};
  oldest = {};
  words.assign(enabled() ? bytes / 4 + 1 : 0, Word{});
  times.assign(numWarps, 0); // slot 0 is nobody's
}

void Races::keepTimes(Word &word) {
  if (!word.readTime)
    return;
  if (!word.slot) {
    word.slot = uint32_t(times.size() / numWarps);
    times.resize(times.size() + numWarps);
  }
  std::fill_n(times.begin() + word.slot * numWarps, numWarps, word.readTime);
  word.readTime = 0;
}

void Races::follow(uint32_t warps, uint32_t to) {
  Clock joined{};
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
      acquire(w, joined);
}

void Races::findOldest(unsigned warp) {
  oldest[warp] = now;
  for (unsigned v = 0; v < numWarps; ++v)
    if (v != warp)
      oldest[warp] = std::min(oldest[warp], known[warp][v]);
}

void Races::synchronize(uint32_t warpMask) { follow(warpMask, warpMask); }

} // namespace meshwork::ptx
