#include "test/Support/Emulator/ptx/BulkCopies.h"

#include "test/Support/Emulator/ptx/Boxes.h"
#include "test/Support/Emulator/ptx/BulkDecode.h"
#include "test/Support/Emulator/ptx/Mbarriers.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <utility>

namespace meshwork::ptx {
namespace {

template <class... A>
[[noreturn]] void fault(unsigned lane, const absl::FormatSpec<A...> &format,
                        const A &...arguments) {
  throw Fault{Fault::Kind::asynchronous, absl::StrFormat(format, arguments...),
              int(lane)};
}
void checkAligned(uint64_t value, uint64_t alignment, unsigned lane) {
  if (value % alignment)
    throw Fault{
        Fault::Kind::misaligned,
        absl::StrFormat("0x%x is not a multiple of %u", value, alignment),
        int(lane)};
}

/// A map is in global memory or a parameter of the kernel.
TensorMap readMap(Warp &warp, uint64_t address, unsigned rank, unsigned lane) {
  uint64_t where = address & window::mask;
  if (where == window::shared || where == window::local)
    fault(lane, "a tensor map in shared or local memory");
  TensorMap map;
  constexpr unsigned half = sizeof map / 2; // the map is aligned to 64 bytes
  for (unsigned part = 0; part < 2; ++part) {
    LaneAddresses from{};
    from[lane] = address + part * half;
    Pointers at = resolve(warp, Space::generic, from, Mask(1) << lane, half,
                          Access::read);
    std::memcpy(reinterpret_cast<std::byte *>(&map) + part * half, at[lane],
                half);
  }
  if (map.magic != TensorMap::magicNumber)
    fault(lane, "no tensor map at 0x%x: cuTensorMapEncodeTiled writes them",
          address);
  if (map.rank != rank)
    fault(lane, "a copy of %u dims, the tensor map has %u", rank,
          unsigned(map.rank));
  return map;
}
/// Eight rows of a swizzled box begin where the pattern does.
void checkBoxPlace(const TensorMap &map, uint64_t shared, unsigned lane) {
  checkAligned(shared, map.swizzled ? 1024 : 128, lane);
}
Coordinates coordinatesOf(Warp &warp, const BulkRegisters &r, unsigned lane) {
  Coordinates at{};
  for (unsigned d = 0; d < r.rank; ++d)
    at[d] = warp.at<int32_t>(r.coordinates[d])[lane];
  return at;
}

void issueLoad(Warp &warp, BulkLoad &&load) {
  MBarrier &mbarrier = mbarrierAt(warp, load.mbarrier, load.lane);
  if (!mbarrier.fenced)
    fault(load.lane,
          "the mbarrier was initialized without a fence.mbarrier_init or "
          "fence.proxy.async of warp %u after it",
          mbarrier.warp);
  load.warp = warp.index;
  load.pc = warp.current.pc;
  // Whoever still reads there is in a race with the copy.
  sharedAt(warp, load.to, load.bytes, load.lane, Access::write);
  warp.block->races.release(warp.index, load.clock);
  warp.block->loads.push_back(std::move(load));
}

void land(Warp &warp, const BulkLoad &load) {
  Block &block = *warp.block;
  if (load.tensor)
    loadBox(warp, load.lane, load.map, load.at, load.to);
  else
    std::memcpy(&block.shared[load.to],
                globalAt(warp, load.from, load.bytes, load.lane, Access::read),
                load.bytes);
  block.genericWrites.forget(load.to, load.bytes);
  completeBytes(block.mbarriers.at(load.mbarrier), load.bytes, load.clock);
}

void readSource(Warp &warp, BulkStore &store) {
  if (store.box.empty())
    store.box = readBox(warp, store.lane, store.map, store.from);
}

} // namespace

void beginTensorLoad(Warp &warp, const Instruction &i, Mask active) {
  BulkRegisters r = registersOf(warp, i);
  eachLane(active, [&](unsigned lane) {
    BulkLoad load;
    load.lane = lane;
    load.tensor = true;
    load.map = readMap(warp, r.global.of(warp, lane), r.rank, lane);
    load.at = coordinatesOf(warp, r, lane);
    uint64_t to = r.shared.of(warp, lane);
    checkBoxPlace(load.map, to, lane);
    load.to = uint32_t(to);
    load.bytes = load.map.boxBytes();
    load.mbarrier = uint32_t(r.mbarrier.of(warp, lane));
    issueLoad(warp, std::move(load));
  });
}

void beginLoad(Warp &warp, const Instruction &i, Mask active) {
  BulkRegisters r = registersOf(warp, i);
  eachLane(active, [&](unsigned lane) {
    BulkLoad load;
    load.lane = lane;
    load.from = r.global.of(warp, lane);
    load.to = uint32_t(r.shared.of(warp, lane));
    load.bytes = warp.at<uint32_t>(r.bytes)[lane];
    load.mbarrier = uint32_t(r.mbarrier.of(warp, lane));
    checkAligned(load.from | load.to | load.bytes, 16, lane);
    if (load.bytes == 0)
      return;
    issueLoad(warp, std::move(load));
  });
}

void beginStore(Warp &warp, const Instruction &i, Mask active) {
  BulkRegisters r = registersOf(warp, i);
  eachLane(active, [&](unsigned lane) {
    BulkStore store;
    store.lane = lane;
    store.pc = warp.current.pc;
    store.group = warp.storeCommits[lane];
    store.map = readMap(warp, r.global.of(warp, lane), r.rank, lane);
    store.at = coordinatesOf(warp, r, lane);
    uint64_t from = r.shared.of(warp, lane);
    checkBoxPlace(store.map, from, lane);
    store.from = uint32_t(from);
    // It may be read now already; what counts is read at the wait.
    readBox(warp, lane, store.map, store.from);
    warp.stores.push_back(std::move(store));
  });
}

void commitStores(Warp &warp, const Instruction &, Mask active) {
  eachLane(active, [&](unsigned lane) { ++warp.storeCommits[lane]; });
}

/// All groups but the last `target` ones; with `extra` only until shared memory
/// is read.
void waitForStores(Warp &warp, const Instruction &i, Mask active) {
  uint32_t here = warp.current.pc;
  auto done = [&](BulkStore &store) {
    bool late = int64_t(store.group) <
                int64_t(warp.storeCommits[store.lane]) - int64_t(i.target);
    if (!(active >> store.lane & 1) || !late)
      return false;
    warp.current.pc = store.pc; // of a fault
    readSource(warp, store);
    if (!i.extra)
      writeBox(warp, store.lane, store.map, store.at, store.box);
    return !i.extra;
  };
  std::erase_if(warp.stores, done);
  warp.current.pc = here;
}

bool landNext(Block &block, const Warp *&running) {
  auto next = std::find_if(
      block.loads.begin(), block.loads.end(),
      [&](const BulkLoad &load) { return isWaitedFor(block, load.mbarrier); });
  if (next == block.loads.end())
    return false;
  BulkLoad load = std::move(*next);
  block.loads.erase(next);
  Warp &warp = block.warps[load.warp];
  running = &warp;
  uint32_t pc = std::exchange(warp.current.pc, load.pc);
  land(warp, load);
  warp.current.pc = pc;
  return true;
}

void checkLoadsDone(Block &block, const Warp *&running) {
  if (block.loads.empty())
    return;
  const BulkLoad &load = block.loads.front();
  Warp &warp = block.warps[load.warp];
  running = &warp;
  warp.current.pc = load.pc;
  fault(load.lane,
        "the block ended while a bulk copy to shared address 0x%x was under "
        "way: nobody waited for its mbarrier at 0x%x",
        load.to, load.mbarrier);
}

void finishStores(Warp &warp) {
  for (const BulkStore &store : warp.stores) {
    warp.current.pc = store.pc;
    if (store.box.empty())
      fault(store.lane, "the warp ends without a cp.async.bulk.wait_group for "
                        "this store");
    writeBox(warp, store.lane, store.map, store.at, store.box);
  }
  warp.stores.clear();
}

} // namespace meshwork::ptx
