#include "test/Support/Emulator/ptx/Barriers.h"

#include "absl/strings/str_cat.h"

namespace meshwork::ptx {
namespace {

[[noreturn]] void fault(std::string text) {
  throw Fault{Fault::Kind::barrier, std::move(text)};
}

/// Threads that complete the barrier; a warp counts whole, even the last one.
unsigned expectedThreads(Warp &warp, const Instruction &i) {
  if (i.r[1] == noRegister)
    return unsigned(warp.block->warps.size()) * numLanes;
  unsigned threads = warp.at<uint32_t>(i.r[1])[0];
  if (threads == 0 || threads % numLanes)
    fault(absl::StrCat("a barrier of ", threads,
                       " threads, expected whole warps"));
  return threads;
}

bool reduces(const Instruction &i) {
  return BarrierKind(i.count) >= BarrierKind::count;
}

void writeResult(Warp &warp, const Instruction &i, const Barrier &barrier) {
  if (!reduces(i))
    return;
  if (BarrierKind(i.count) == BarrierKind::count) {
    std::fill_n(warp.at<uint32_t>(i.r[2]), numLanes, barrier.votes);
    return;
  }
  bool result = BarrierKind(i.count) == BarrierKind::all
                    ? barrier.votes == barrier.voters
                    : barrier.votes != 0;
  warp.setPredicate(i.r[2], result ? allLanes : 0, warp.lanes);
}

void release(Block &block, unsigned id) {
  Barrier &barrier = block.barriers[id];
  Mask waiting = 0;
  const Instruction *code = block.launch->program->code.data();
  for (Warp &warp : block.warps) {
    if (warp.barrier != int(id))
      continue;
    waiting |= Mask(1) << warp.index;
    writeResult(warp, code[warp.current.pc], barrier);
    ++warp.current.pc;
    warp.barrier = -1;
    warp.ready = true;
  }
  block.races.follow(barrier.warps, waiting);
  barrier = {};
}

} // namespace

void arrive(Warp &warp, const Instruction &i, Mask active) {
  Block &block = *warp.block;
  uint32_t id = warp.at<uint32_t>(i.r[0])[0];
  if (id >= block.barriers.size())
    fault(absl::StrCat("barrier ", id, ", a block has 16"));
  Barrier &barrier = block.barriers[id];
  unsigned expected = expectedThreads(warp, i);
  if (barrier.arrived && barrier.expected != expected)
    fault(absl::StrCat("barrier ", id, " of ", expected,
                       " threads; others wait there for ", barrier.expected));
  barrier.expected = expected;
  barrier.arrived += numLanes;
  barrier.warps |= Mask(1) << warp.index;
  if (reduces(i)) {
    Mask votes = warp.predicate(i.r[3]) ^ (i.extra ? allLanes : 0);
    barrier.votes += unsigned(__builtin_popcount(votes & active));
    barrier.voters += unsigned(__builtin_popcount(active));
  }
  if (BarrierKind(i.count) == BarrierKind::arrive) {
    ++warp.current.pc;
  } else {
    warp.barrier = int(id);
    warp.ready = false;
  }
  if (barrier.arrived == barrier.expected)
    release(block, id);
}

} // namespace meshwork::ptx
