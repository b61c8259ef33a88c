// Which bytes of a rank are for what, and when they are most.
#pragma once

#include "lib/Explain/Listing.h"
#include <array>

namespace meshwork::explain {

inline constexpr size_t numBufferKinds =
    static_cast<size_t>(plan::BufferKind::MAX) + 1;

struct MemoryUse {
  /// The largest sum of buffers of a kind that live at once; kinds reach theirs
  /// at different times, so these may add up to more than the peak.
  std::array<uint64_t, numBufferKinds> mostOfKind{};
  uint64_t persistentBytes = 0; // always live
  uint64_t arenaBytes = 0;
  uint64_t libraryBytes = 0; // scratch of libraries, one thread
  uint64_t peakBytes() const { return arenaBytes + libraryBytes; }
  /// The first instruction at which most bytes are live, and how many. The
  /// arena may be larger: by alignment, and by gaps that no buffer fits.
  uint64_t fullestAt = 0;
  uint64_t fullestBytes = 0;
  /// What is live then and not persistent; indices of buffers, largest first.
  std::vector<uint32_t> liveAtFullest;
};
MemoryUse measureMemory(const plan::Program &program, const Listing &listing);

} // namespace meshwork::explain
