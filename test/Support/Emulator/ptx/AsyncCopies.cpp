// cp.async: a copy happens as late as it may, at the wait for its group, so
// that a kernel which waits for too little reads old data.
#include "test/Support/Emulator/ptx/Addresses.h"
#include "test/Support/Emulator/ptx/BulkCopies.h"

namespace meshwork::ptx {
namespace {

/// Only what is read must be there: the first and the last byte of it.
void checkPart(Warp &warp, LaneAddresses from, unsigned lane, uint32_t bytes) {
  if (bytes == 0)
    return;
  resolve(warp, Space::global, from, Mask(1) << lane, 1, Access::read);
  from[lane] += bytes - 1;
  resolve(warp, Space::global, from, Mask(1) << lane, 1, Access::read);
}

/// r[0] to, r[1] from, r[2] bytes to read; `count` bytes are written.
void beginCopy(Warp &warp, const Instruction &i, Mask active) {
  LaneAddresses to = addressesOf(warp, i), from = secondAddressesOf(warp, i);
  const uint32_t *sourceBytes = warp.at<uint32_t>(i.r[2]);
  for (uint64_t &address : to)
    address -= (address & window::mask) == window::shared ? window::shared : 0;
  resolve(warp, Space::shared, to, active, i.count, Access::write);
  Mask whole = 0;
  eachLane(active, [&](unsigned lane) {
    if (sourceBytes[lane] > i.count)
      throw Fault{Fault::Kind::asynchronous,
                  "cp.async reads more bytes than it copies", int(lane)};
    whole |= Mask(sourceBytes[lane] == i.count) << lane;
    checkPart(warp, from, lane, sourceBytes[lane]);
    warp.copies.push_back({lane, warp.commits[lane], uint32_t(to[lane]),
                           from[lane], i.count, uint8_t(sourceBytes[lane])});
  });
  resolve(warp, Space::global, from, whole, i.count, Access::read);
}

void finish(Warp &warp, const AsyncCopy &copy) {
  LaneAddresses address{};
  address[copy.lane] = copy.to;
  Pointers to = resolve(warp, Space::shared, address, Mask(1) << copy.lane,
                        copy.bytes, Access::write);
  std::memset(to[copy.lane], 0, copy.bytes);
  std::memcpy(to[copy.lane], reinterpret_cast<const void *>(copy.from),
              copy.sourceBytes);
}

void commit(Warp &warp, const Instruction &, Mask active) {
  eachLane(active, [&](unsigned lane) { ++warp.commits[lane]; });
}
/// All groups but the last `target` ones; with `extra` what has no group too.
void wait(Warp &warp, const Instruction &i, Mask active) {
  auto done = [&](const AsyncCopy &copy) {
    bool late = int64_t(copy.group) <
                int64_t(warp.commits[copy.lane]) - int64_t(i.target);
    if (!(active >> copy.lane & 1) || (!late && !i.extra))
      return false;
    finish(warp, copy);
    return true;
  };
  std::erase_if(warp.copies, done);
}

void decodeCopy(Line &line) {
  if (!line.take("ca") && !line.take("cg"))
    line.fail(".ca, .cg, .commit_group, .wait_group or .wait_all is missing");
  if (!line.take("shared") && !line.take("shared::cta"))
    line.fail("the destination is not .shared");
  if (!line.take("global"))
    line.fail("the source is not .global");
  while (line.takePrefix("L2::")) {
  }
  Line::Address to = line.address(line.operand(0)),
                from = line.address(line.operand(1));
  uint64_t bytes = line.integer(2);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    line.fail("cp.async copies 4, 8 or 16 bytes");
  uint32_t sourceBytes = line.numOperands() > 3
                             ? line.source(3, Type::u32)
                             : line.decoder.constant(bytes, 32);
  Instruction &i = line.emit(beginCopy, {to.base, from.base, sourceBytes});
  i.offset = to.offset;
  i.offset2 = from.offset;
  i.extra = uint8_t((to.wide ? 1 : 0) | (from.wide ? 2 : 0));
  i.count = uint8_t(bytes);
}

void decodeCp(Line &line) {
  if (!line.take("async"))
    line.fail("only cp.async is modelled");
  if (line.take("bulk"))
    return decodeBulk(line);
  if (line.take("commit_group")) {
    line.emit(commit, {});
  } else if (line.take("wait_group")) {
    uint32_t groups = uint32_t(line.integer(0));
    line.emit(wait, {}).target = groups;
  } else if (line.take("wait_all")) {
    line.emit(wait, {}).extra = 1;
  } else {
    decodeCopy(line);
  }
}

} // namespace

std::span<const Opcode> copyOpcodes() {
  static constexpr Opcode list[] = {{"cp", decodeCp}};
  return list;
}

} // namespace meshwork::ptx
