// State of a running block, as instructions see it.
#pragma once

#include "test/Support/Emulator/ptx/Async.h"
#include "test/Support/Emulator/ptx/Memory.h"
#include "test/Support/Emulator/ptx/Program.h"
#include "test/Support/Emulator/ptx/Races.h"

#include <cstring>
#include <deque>
#include <map>

namespace meshwork::ptx {

/// What a kernel did wrong; thrown by handlers, reported by launch().
struct Fault {
  enum class Kind : uint8_t {
    illegalAddress,
    misaligned,
    race,
    barrier,
    lanes,
    trap,
    limit,
    asynchronous
  } kind;
  std::string text;
  int lane = -1;
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t(x) * y * z; }
};

/// What all blocks of a launch share.
struct Launch {
  const Program *program;
  Dim3 grid, block;
  uint32_t dynamicSharedBytes = 0;
  const std::byte *parameters = nullptr;
  Memory *memory = nullptr;
  uint64_t maxInstructions = 0;                   // of a warp, 0: no limit
  uint64_t firstBlock = 0, endBlock = UINT64_MAX; // that run
};

/// What keeps lanes at an instruction: other lanes of the warp (also on the way
/// to a barrier), or the phase of an mbarrier.
enum class Waits : uint8_t { no, lanes, phase };

/// Lanes of a warp at one instruction.
struct Group {
  uint32_t pc;
  Mask mask;
  Waits waits = Waits::no;
};

/// One 4, 8 or 16 byte copy of cp.async; it happens at the wait.
struct AsyncCopy {
  unsigned lane;
  uint32_t group; // number of commits of the lane before it
  uint32_t to;    // shared
  uint64_t from;
  uint8_t bytes, sourceBytes;
};

struct Block;

struct Warp {
  Block *block = nullptr;
  unsigned index = 0;
  std::byte *registers = nullptr;
  std::byte *local = nullptr;
  Mask lanes = 0, exited = 0;
  Group current{};
  std::vector<Group> others;
  uint32_t stop = 0; // pc of the next other group above current.pc
  int barrier = -1;  // waits there
  bool ready = false;
  bool parked = false; // no lanes can go on before the phase of an mbarrier
  Mask carry = 0;      // of add.cc
  uint64_t instructions = 0, laneInstructions = 0;
  std::vector<AsyncCopy> copies;
  std::array<uint32_t, numLanes> commits{};
  std::vector<BulkStore> stores;
  std::array<uint32_t, numLanes> storeCommits{};
  std::vector<PendingProduct> products; // of wgmma
  uint32_t productCommits = 0;
  size_t productsIssued = 0;
  bool productsFenced = false; // a wgmma.fence came
  uint32_t proxyFences = 0;    // number of fence.proxy.async
  Range recent[2];             // global memory touched last

  template <class T> T *at(uint32_t offset) {
    return reinterpret_cast<T *>(registers + offset);
  }
  Mask &predicate(uint32_t offset) { return *at<Mask>(offset); }
  void setPredicate(uint32_t offset, Mask value, Mask active) {
    if (offset == noRegister)
      return;
    Mask &to = predicate(offset);
    to = (to & ~active) | (value & active);
  }
};

struct Barrier {
  unsigned arrived = 0, expected = 0; // threads
  Mask warps = 0;                     // that arrived
  unsigned votes = 0, voters = 0;     // of bar.red
};

struct Block {
  const Launch *launch = nullptr;
  Dim3 index;
  std::vector<Warp> warps;
  std::vector<std::byte> shared; // by address, sharedBegin bytes unused
  std::array<Barrier, 16> barriers;
  std::map<uint32_t, MBarrier> mbarriers; // by shared address
  std::deque<BulkLoad> loads;             // in the order they were issued
  GenericWrites genericWrites;
  /// Of each warpgroup: what any of its warps has issued so far.
  std::vector<std::vector<PendingProduct>> groupProducts;
  Races races;
};

template <class F> inline void eachLane(Mask mask, F f) {
  if (mask == allLanes) { // a loop of known length
    for (unsigned lane = 0; lane < numLanes; ++lane)
      f(lane);
    return;
  }
  for (; mask; mask &= mask - 1)
    f(unsigned(__builtin_ctz(mask)));
}

} // namespace meshwork::ptx
