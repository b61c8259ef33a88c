// What warps of a block have begun and what completes later: phases of
// mbarriers, bulk copies (TMA), products of wgmma. Each happens as late as it
// may, so that a kernel which waits for too little sees old data.
#pragma once

#include "test/Support/Emulator/ptx/Races.h"
#include "test/Support/Emulator/ptx/TensorMap.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwork::ptx {

/// An mbarrier; its 8 bytes of shared memory hold `mark`, to see that nobody
/// writes over them.
struct MBarrier {
  static constexpr uint64_t mark = 0x72656972'7261626d; // "mbarrier"
  uint32_t count = 0;   // arrivals that end a phase
  uint32_t pending = 0; // of them not here yet
  uint32_t bytes = 0;   // expected of bulk copies and not here yet
  uint32_t phase = 0;   // number of completed phases
  unsigned warp = 0;    // that initialized it
  bool fenced = false;  // afterwards, so that bulk copies see it
  /// What those that arrived have done; `completed`: up to the last phase.
  Races::Clock arriving{}, completed{};
};

/// Coordinates of a box: of its first element.
using Coordinates = std::array<int32_t, TensorMap::maxRank>;

/// A bulk copy to shared memory.
struct BulkLoad {
  unsigned warp = 0, lane = 0; // that issued it
  uint32_t pc = 0;
  bool tensor = false;
  TensorMap map; // if it copies a box of a tensor
  Coordinates at{};
  uint64_t from = 0; // else
  uint32_t to = 0, bytes = 0;
  uint32_t mbarrier = 0;
  Races::Clock clock{}; // what the warp had done
};

/// A box on its way from shared to global memory.
struct BulkStore {
  unsigned lane = 0;
  uint32_t pc = 0;
  uint32_t group = 0; // number of commits of the lane before it
  TensorMap map;
  Coordinates at{};
  uint32_t from = 0;
  std::vector<std::byte> box; // read at the wait; empty before
};

/// A wgmma.mma_async that nobody waited for yet.
struct PendingProduct {
  uint32_t pc = 0;
  uint32_t group = 0; // number of commits of the warp before it
  uint64_t a = 0, b = 0;
  bool accumulates = false;

  bool operator==(const PendingProduct &) const = default;
};

/// Which bytes of shared memory ordinary instructions (the generic proxy) wrote
/// last, and in whose name. TMA and wgmma (the async proxy) see them only after
/// a fence.proxy.async of that warp.
class GenericWrites {
public:
  static constexpr uint32_t none = ~uint32_t(0);
  void reset(uint32_t bytes) { words.assign(bytes / 4 + 1, none); }
  /// `fences`: how many the warp has executed.
  void write(uint32_t address, uint32_t bytes, unsigned warp, uint32_t fences) {
    if (!words.empty())
      fill(address, bytes, fences << 5 | warp);
  }
  void forget(uint32_t address, uint32_t bytes) { fill(address, bytes, none); }
  uint32_t last(uint32_t address) const { return words[address / 4]; }
  static unsigned warpOf(uint32_t word) { return word & 31; }
  static uint32_t fencesOf(uint32_t word) { return word >> 5; }

private:
  void fill(uint32_t address, uint32_t bytes, uint32_t value) {
    for (uint32_t w = address / 4; w <= (address + bytes - 1) / 4; ++w)
      words[w] = value;
  }
  std::vector<uint32_t> words; // empty: nobody looks
};

} // namespace meshwork::ptx
