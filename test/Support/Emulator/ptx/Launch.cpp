#include "test/Support/Emulator/ptx/Launch.h"

#include "test/Support/Emulator/ptx/BulkCopies.h"
#include "test/Support/Emulator/ptx/Mbarriers.h"
#include "test/Support/Emulator/ptx/WarpLoop.h"
#include "test/Support/Emulator/ptx/Wgmma.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace meshwork::ptx {
namespace {

std::string write(const Dim3 &at) {
  return absl::StrCat("(", at.x, ",", at.y, ",", at.z, ")");
}
Dim3 unflatten(uint64_t index, const Dim3 &extent) {
  return {uint32_t(index % extent.x), uint32_t(index / extent.x % extent.y),
          uint32_t(index / extent.x / extent.y)};
}
unsigned numWarpsOf(const Launch &launch) {
  return unsigned((launch.block.volume() + numLanes - 1) / numLanes);
}

absl::StatusCode codeOf(Fault::Kind kind) {
  switch (kind) {
  case Fault::Kind::illegalAddress:
    return absl::StatusCode::kOutOfRange;
  case Fault::Kind::limit:
    return absl::StatusCode::kDeadlineExceeded;
  default:
    return absl::StatusCode::kFailedPrecondition;
  }
}

/// Others have one value in all blocks of a launch.
bool isOfBlock(Special what) {
  return what == Special::ctaidX || what == Special::ctaidY ||
         what == Special::ctaidZ || what == Special::sharedBytes;
}

/// A place to run blocks in, one after the other.
class BlockRunner {
public:
  explicit BlockRunner(const Launch &launch) : launch(launch) {
    const Program &program = *launch.program;
    unsigned numWarps = numWarpsOf(launch);
    warpBytes = program.registerFileBytes + 64;
    // What nobody wrote reads as NaN.
    registers.assign(size_t(numWarps) * warpBytes + 64, std::byte(0xff));
    local.resize(size_t(numWarps) * numLanes * program.localBytes);
    block.launch = &launch;
    block.warps.resize(numWarps);
    for (unsigned w = 0; w < numWarps; ++w)
      prepare(block.warps[w], w);
  }

  void run(const Dim3 &index) {
    uint32_t sharedEnd =
        launch.program->dynamicSharedBegin + launch.dynamicSharedBytes;
    block.index = index;
    block.shared.assign(sharedEnd, std::byte(0xff));
    block.barriers = {};
    block.mbarriers.clear();
    block.loads.clear();
    block.groupProducts.clear();
    if (launch.program->usesAsyncProxy)
      block.genericWrites.reset(sharedEnd);
    block.races.reset(sharedEnd, unsigned(block.warps.size()));
    std::fill(local.begin(), local.end(), std::byte(0xff));
    for (Warp &warp : block.warps)
      start(warp);
    // Copies land only when nobody can go on without.
    while (runReady() || landNext(block, running)) {
    }
    checkEnded();
  }

  /// Where a fault happened, for its message.
  std::string place(const Fault &fault) const {
    const Program &program = *launch.program;
    const Statement &at =
        program.statements[program.code[running->current.pc].statement];
    std::string text =
        absl::StrCat("kernel ", program.name, ": ", fault.text, "; line ",
                     at.line, " '", at.text, "', block ", write(block.index));
    if (fault.lane < 0)
      return absl::StrCat(text, ", warp ", running->index);
    uint64_t thread = running->index * numLanes + unsigned(fault.lane);
    return absl::StrCat(text, ", thread ",
                        write(unflatten(thread, launch.block)));
  }

  Counts counts() const {
    Counts sum;
    for (const Warp &warp : block.warps) {
      sum.instructions += warp.instructions;
      sum.laneInstructions += warp.laneInstructions;
    }
    return sum;
  }

private:
  void prepare(Warp &warp, unsigned index) {
    const Program &program = *launch.program;
    warp.block = &block;
    warp.index = index;
    uint64_t begin = reinterpret_cast<uint64_t>(registers.data());
    warp.registers = registers.data() + (64 - begin % 64) % 64 +
                     size_t(index) * (warpBytes / 64 * 64);
    warp.local = local.data() + size_t(index) * numLanes * program.localBytes;
    uint64_t left = launch.block.volume() - uint64_t(index) * numLanes;
    warp.lanes = left >= numLanes ? allLanes : (Mask(1) << left) - 1;
    for (const ConstantRegister &constant : program.constants)
      fillRegister(warp, constant.offset, constant.bits,
                   [&](unsigned) { return constant.value; });
    for (const SpecialRegister &special : program.specials)
      fillSpecial(warp, special);
  }
  template <class F>
  static void fillRegister(Warp &warp, uint32_t offset, unsigned bits, F f) {
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      uint64_t value = f(lane);
      std::memcpy(warp.at<std::byte>(offset) + lane * (bits / 8), &value,
                  bits / 8);
    }
  }
  void start(Warp &warp) {
    warp.current = {0, warp.lanes};
    warp.others.clear();
    warp.exited = 0;
    warp.barrier = -1;
    warp.ready = true;
    warp.parked = false;
    warp.copies.clear();
    warp.commits = {};
    warp.stores.clear();
    warp.storeCommits = {};
    warp.products.clear();
    warp.productCommits = warp.proxyFences = 0;
    warp.productsIssued = 0;
    warp.productsFenced = false;
    for (const SpecialRegister &special : launch.program->specials)
      if (isOfBlock(special.what))
        fillSpecial(warp, special);
  }
  void fillSpecial(Warp &warp, const SpecialRegister &special) {
    fillRegister(warp, special.offset, special.bits, [&](unsigned lane) {
      return valueOf(special.what, warp, lane);
    });
  }
  uint64_t valueOf(Special what, const Warp &warp, unsigned lane) const;

  bool runReady() {
    bool any = false;
    for (Warp &warp : block.warps) {
      if (!warp.ready)
        continue;
      running = &warp;
      if (!resume(warp))
        continue;
      any = true;
      runWarp(warp);
    }
    return any;
  }
  void checkEnded() {
    checkNotDeadlocked(block, running);
    for (Warp &warp : block.warps) {
      if (warp.exited == warp.lanes)
        continue;
      running = &warp;
      const Barrier &barrier = block.barriers[unsigned(warp.barrier)];
      throw Fault{Fault::Kind::barrier,
                  absl::StrCat("barrier ", warp.barrier, " has ",
                               barrier.arrived, " of ", barrier.expected,
                               " threads, the other warps have ended or wait "
                               "at another barrier")};
    }
    checkLoadsDone(block, running);
    checkProductsAgree(block, running);
  }

  const Launch &launch;
  Block block;
  const Warp *running = nullptr;
  std::vector<std::byte> registers, local;
  size_t warpBytes;
};

uint64_t BlockRunner::valueOf(Special what, const Warp &warp,
                              unsigned lane) const {
  Dim3 thread = unflatten(uint64_t(warp.index) * numLanes + lane, launch.block);
  const uint32_t values[] = {thread.x,
                             thread.y,
                             thread.z,
                             launch.block.x,
                             launch.block.y,
                             launch.block.z,
                             block.index.x,
                             block.index.y,
                             block.index.z,
                             launch.grid.x,
                             launch.grid.y,
                             launch.grid.z,
                             lane,
                             warp.index,
                             uint32_t(block.warps.size()),
                             /*smId*/ 0,
                             /*numSms*/ 1,
                             /*gridId*/ 0,
                             1u << lane,
                             (1u << lane) - 1,
                             (2u << lane) - 1,
                             ~((2u << lane) - 1),
                             ~((1u << lane) - 1),
                             uint32_t(block.shared.size()) - sharedBegin,
                             launch.dynamicSharedBytes,
                             0,
                             1};
  static_assert(std::size(values) == size_t(Special::one) + 1);
  return values[unsigned(what)];
}

} // namespace

absl::Status runGrid(const Launch &launch, unsigned numThreads,
                     Counts &counts) {
  uint64_t end = std::min(launch.grid.volume(), launch.endBlock),
           numBlocks = end - std::min(end, launch.firstBlock);
  std::atomic<uint64_t> next = launch.firstBlock;
  std::mutex mutex;
  absl::Status first;
  auto work = [&] {
    BlockRunner runner(launch);
    absl::Status status;
    try {
      for (uint64_t b; (b = next.fetch_add(1)) < end;)
        runner.run(unflatten(b, launch.grid));
    } catch (const Fault &fault) {
      next = end;
      status = absl::Status(codeOf(fault.kind), runner.place(fault));
    }
    std::lock_guard lock(mutex);
    first.Update(status);
    counts.instructions += runner.counts().instructions;
    counts.laneInstructions += runner.counts().laneInstructions;
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t < std::min<uint64_t>(numThreads, numBlocks); ++t)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  return first;
}

} // namespace meshwork::ptx
