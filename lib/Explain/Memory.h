// Which bytes of a rank are for what, and when they are most.
#pragma once

#include "lib/Explain/Listing.h"
#include <array>
#include <vector>

namespace meshwork::explain {

inline constexpr size_t numBufferKinds =
    static_cast<size_t>(plan::BufferKind::MAX) + 1;

using BytesByKind = std::array<uint64_t, numBufferKinds>;

/// Bytes in the device's arena that live at each time of the line of
/// lib/Plan/Lives.h; at least one time.
std::vector<BytesByKind> memoryOverStep(const plan::Program &program,
                                        const plan::Lives &lives);
uint64_t sumOf(const BytesByKind &bytes);

struct MemoryUse {
  /// The largest sum of buffers of a kind that live at once; kinds reach theirs
  /// at different times, so these may add up to more than the peak.
  BytesByKind mostOfKind{};
  uint64_t persistentBytes = 0; // always live
  uint64_t arenaBytes = 0;
  uint64_t libraryBytes = 0; // scratch of libraries, one thread
  uint64_t peakBytes() const { return arenaBytes + libraryBytes; }
  /// The first instruction at which most bytes are live, and how many. The
  /// arena may be larger: by alignment, and by gaps that no buffer fits.
  uint64_t fullestAt = 0;
  uint64_t fullestBytes = 0;
  uint64_t fullestTime = 0; // on the line
  /// What is live then and not persistent; indices of buffers, largest first.
  std::vector<uint32_t> liveAtFullest;
};
MemoryUse measureMemory(const plan::Program &program, const Listing &listing);

} // namespace meshwork::explain
