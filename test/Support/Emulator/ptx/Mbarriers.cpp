#include "test/Support/Emulator/ptx/Mbarriers.h"

#include "absl/strings/str_format.h"

#include <set>

namespace meshwork::ptx {
namespace {

constexpr uint32_t maxCount = (1 << 20) - 1; // PTX ISA 8.8, 9.7.13.15.3

template <class... A>
[[noreturn]] void fault(unsigned lane, const absl::FormatSpec<A...> &format,
                        const A &...arguments) {
  throw Fault{Fault::Kind::asynchronous, absl::StrFormat(format, arguments...),
              int(lane)};
}

void completePhaseIfDone(MBarrier &mbarrier) {
  if (mbarrier.pending || mbarrier.bytes)
    return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.count;
  mbarrier.completed = mbarrier.arriving;
}

void init(Warp &warp, const Instruction &i, Mask active) {
  Pointers to = resolve(warp, Space::shared, addressesOf(warp, i), active, 8,
                        Access::write);
  LaneAddresses addresses = addressesOf(warp, i);
  const uint32_t *counts = warp.at<uint32_t>(i.r[1]);
  eachLane(active, [&](unsigned lane) {
    uint32_t at = uint32_t(addresses[lane]), count = counts[lane];
    if (count == 0 || count > maxCount)
      fault(lane, "an mbarrier of %u arrivals, expected 1 to %u", count,
            maxCount);
    MBarrier made;
    made.count = made.pending = count;
    made.warp = warp.index;
    if (!warp.block->mbarriers.emplace(at, made).second)
      fault(lane, "the mbarrier at shared address 0x%x is initialized twice",
            at);
    std::memcpy(to[lane], &MBarrier::mark, sizeof MBarrier::mark);
  });
}

void expectBytes(MBarrier &mbarrier, uint32_t bytes, unsigned lane) {
  if (bytes > maxCount || mbarrier.bytes + bytes > maxCount)
    fault(lane, "an mbarrier expects %u and %u bytes, at most %u together",
          mbarrier.bytes, bytes, maxCount);
  mbarrier.bytes += bytes;
}

/// r: address, state (a destination), bytes to expect or none.
void arriveAt(Warp &warp, const Instruction &i, Mask active) {
  LaneAddresses addresses = addressesOf(warp, i);
  uint64_t *states = warp.at<uint64_t>(i.r[1]);
  Races::Clock clock{};
  warp.block->races.release(warp.index, clock);
  eachLane(active, [&](unsigned lane) {
    MBarrier &mbarrier = mbarrierAt(warp, addresses[lane], lane);
    states[lane] = uint64_t(mbarrier.phase) << 32 | mbarrier.pending;
    if (i.r[2] != noRegister)
      expectBytes(mbarrier, warp.at<uint32_t>(i.r[2])[lane], lane);
    if (mbarrier.pending == 0)
      fault(lane,
            "more than the %u arrivals of a phase at the mbarrier at shared "
            "address 0x%x, which still waits for %u bytes",
            mbarrier.count, addresses[lane], mbarrier.bytes);
    --mbarrier.pending;
    Races::join(mbarrier.arriving, clock);
    completePhaseIfDone(mbarrier);
  });
}

/// Runs when the phase of all active lanes is complete.
void passPhase(Warp &warp, const Instruction &i, Mask active) {
  LaneAddresses addresses = addressesOf(warp, i);
  eachLane(active, [&](unsigned lane) {
    MBarrier &mbarrier = mbarrierAt(warp, addresses[lane], lane);
    warp.block->races.acquire(warp.index, mbarrier.completed);
  });
  warp.setPredicate(i.r[2], allLanes, active);
}

/// For the message of a deadlock.
std::string describe(const Warp &warp, uint64_t address) {
  const MBarrier &mbarrier = warp.block->mbarriers.at(uint32_t(address));
  return absl::StrFormat(" warp %u waits for phase %u of the mbarrier at "
                         "shared address 0x%x, which lacks %u of %u arrivals "
                         "and %u bytes;",
                         warp.index, mbarrier.phase, address, mbarrier.pending,
                         mbarrier.count, mbarrier.bytes);
}

void takeSharedB64(Line &line) {
  if (!line.take("shared::cta") || line.type() != Type::b64)
    line.fail("only .shared::cta.b64 is modelled");
}
void expectOperands(Line &line, size_t count) {
  if (line.numOperands() != count)
    line.fail("another number of operands is not modelled");
}

void decodeInit(Line &line) {
  takeSharedB64(line);
  expectOperands(line, 2);
  Line::Address address = line.address(line.operand(0));
  uint32_t count = line.source(1, Type::u32);
  Instruction &i = line.emit(init, {0, count});
  setAddress(line, i, address, Space::shared);
}
void decodeArrive(Line &line) {
  bool expects = line.take("expect_tx");
  takeSharedB64(line);
  expectOperands(line, expects ? 3 : 2);
  uint32_t state = line.dest(0, Type::b64);
  Line::Address address = line.address(line.operand(1));
  uint32_t bytes = expects ? line.source(2, Type::u32) : noRegister;
  Instruction &i = line.emit(arriveAt, {0, state, bytes});
  setAddress(line, i, address, Space::shared);
}
void decodeTryWait(Line &line) {
  if (!line.take("parity"))
    line.fail("only .parity is modelled");
  takeSharedB64(line);
  expectOperands(line, 3);
  uint32_t to = line.destPredicate(line.operand(0).name);
  Line::Address address = line.address(line.operand(1));
  uint32_t parity = line.source(2, Type::u32);
  Instruction &i = line.emit(passPhase, {0, parity, to}, Flow::phase);
  setAddress(line, i, address, Space::shared);
}
void decodeMbarrier(Line &line) {
  if (line.take("init"))
    decodeInit(line);
  else if (line.take("arrive"))
    decodeArrive(line);
  else if (line.take("try_wait"))
    decodeTryWait(line);
  else
    line.fail("only init, arrive and try_wait are modelled");
}

} // namespace

MBarrier &mbarrierAt(Warp &warp, uint64_t address, unsigned lane) {
  LaneAddresses addresses{};
  addresses[lane] = address;
  Pointers at =
      resolve(warp, Space::shared, addresses, Mask(1) << lane, 8, Access::read);
  auto found = warp.block->mbarriers.find(uint32_t(address));
  if (found == warp.block->mbarriers.end())
    fault(lane, "no mbarrier was initialized at shared address 0x%x", address);
  if (std::memcmp(at[lane], &MBarrier::mark, sizeof MBarrier::mark) != 0)
    fault(lane, "the mbarrier at shared address 0x%x was overwritten", address);
  return found->second;
}

Mask lanesWithPhase(Warp &warp, const Instruction &i, Mask active) {
  LaneAddresses addresses = addressesOf(warp, i);
  const uint32_t *parity = warp.at<uint32_t>(i.r[1]);
  Mask done = 0;
  eachLane(active, [&](unsigned lane) {
    if (parity[lane] > 1)
      fault(lane, "parity %u, expected 0 or 1", parity[lane]);
    MBarrier &mbarrier = mbarrierAt(warp, addresses[lane], lane);
    done |= Mask((mbarrier.phase & 1) != parity[lane]) << lane;
  });
  return done;
}

void completeBytes(MBarrier &mbarrier, uint32_t bytes,
                   const Races::Clock &clock) {
  if (bytes > mbarrier.bytes)
    throw Fault{Fault::Kind::asynchronous,
                absl::StrFormat("a bulk copy of %u bytes signals an mbarrier "
                                "that expects %u",
                                bytes, mbarrier.bytes)};
  mbarrier.bytes -= bytes;
  Races::join(mbarrier.arriving, clock);
  completePhaseIfDone(mbarrier);
}

bool isWaitedFor(Block &block, uint32_t mbarrier) {
  for (Warp &warp : block.warps)
    for (const Group &group : warp.others) {
      if (!warp.parked || group.waits != Waits::phase)
        continue;
      LaneAddresses addresses =
          addressesOf(warp, block.launch->program->code[group.pc]);
      bool found = false;
      eachLane(group.mask,
               [&](unsigned lane) { found |= addresses[lane] == mbarrier; });
      if (found)
        return true;
    }
  return false;
}

void fenceMbarriers(Warp &warp) {
  for (auto &[address, mbarrier] : warp.block->mbarriers)
    mbarrier.fenced |= mbarrier.warp == warp.index;
}

void checkNotDeadlocked(Block &block, const Warp *&running) {
  std::string text = "deadlock: no warp can go on, no copy is under way;";
  std::set<uint64_t> named;
  for (Warp &warp : block.warps)
    for (const Group &group : warp.others) {
      if (!warp.parked || group.waits != Waits::phase)
        continue;
      if (named.empty()) {
        warp.current = group;
        running = &warp;
      }
      uint64_t address = addressesOf(
          warp, block.launch->program
                    ->code[group.pc])[unsigned(__builtin_ctz(group.mask))];
      if (named.insert(address).second)
        text += describe(warp, address);
    }
  if (!named.empty())
    throw Fault{Fault::Kind::barrier, text};
}

std::span<const Opcode> mbarrierOpcodes() {
  static constexpr Opcode list[] = {{"mbarrier", decodeMbarrier}};
  return list;
}

} // namespace meshwork::ptx
