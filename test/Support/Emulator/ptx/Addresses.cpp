#include "test/Support/Emulator/ptx/Addresses.h"

#include "absl/strings/str_format.h"

namespace meshwork::ptx {
namespace {

[[noreturn]] void fault(Fault::Kind kind, unsigned lane, std::string text) {
  throw Fault{kind, std::move(text), int(lane)};
}

LaneAddresses sum(Warp &warp, uint32_t base, bool wide, int64_t offset) {
  LaneAddresses result;
  const uint64_t *wideBase = warp.at<uint64_t>(base);
  const uint32_t *narrowBase = warp.at<uint32_t>(base);
  if (wide)
    for (unsigned l = 0; l < numLanes; ++l)
      result[l] = wideBase[l] + uint64_t(offset);
  else
    for (unsigned l = 0; l < numLanes; ++l)
      result[l] = narrowBase[l] + uint64_t(offset);
  return result;
}

const char *nameOf(Access access) {
  return access == Access::read    ? "read"
         : access == Access::write ? "write"
                                   : "atomic";
}

void checkAlignment(const LaneAddresses &addresses, Mask active,
                    unsigned bytes) {
  uint64_t any = 0;
  for (unsigned l = 0; l < numLanes; ++l)
    any |= active >> l & 1 ? addresses[l] : 0;
  if (!(any & (bytes - 1)))
    return;
  eachLane(active, [&](unsigned lane) {
    if (addresses[lane] & (bytes - 1))
      fault(Fault::Kind::misaligned, lane,
            absl::StrFormat("address 0x%x is not aligned to the %u bytes of "
                            "the access",
                            addresses[lane], bytes));
  });
}

/// Looks the allocation up unless it is one of the last two.
void checkGlobal(Warp &warp, uint64_t address, unsigned bytes, unsigned lane,
                 Access access) {
  if (warp.recent[0].covers(address, bytes))
    return;
  if (!warp.recent[1].covers(address, bytes)) {
    const Memory &memory = *warp.block->launch->memory;
    Range found = memory.find(address);
    if (!found.covers(address, bytes))
      fault(Fault::Kind::illegalAddress, lane,
            absl::StrFormat("illegal %s of %u bytes at 0x%x: %s",
                            nameOf(access), bytes, address,
                            memory.describe(address)));
    warp.recent[1] = found;
  }
  std::swap(warp.recent[0], warp.recent[1]);
}

/// Lanes from the lowest to the highest address that they touch.
struct Span {
  uint64_t low = ~0ull, high = 0;
};
Span spanOf(const LaneAddresses &addresses, Mask active) {
  Span span;
  for (unsigned l = 0; l < numLanes; ++l) {
    bool in = active >> l & 1;
    span.low = in && addresses[l] < span.low ? addresses[l] : span.low;
    span.high = in && addresses[l] > span.high ? addresses[l] : span.high;
  }
  return span;
}

/// Whether all lanes are in `range`, `bytes` each.
bool covers(const Range &range, const Span &span, unsigned bytes) {
  return range.covers(span.low, span.high - span.low + bytes);
}

void resolveGlobal(Warp &warp, const LaneAddresses &addresses, Mask active,
                   unsigned bytes, Access access, Pointers &to) {
  if (active && !covers(warp.recent[0], spanOf(addresses, active), bytes))
    eachLane(active, [&](unsigned lane) {
      checkGlobal(warp, addresses[lane], bytes, lane, access);
    });
  for (unsigned l = 0; l < numLanes; ++l)
    to[l] = reinterpret_cast<std::byte *>(addresses[l]);
}

[[noreturn]] void outOfShared(const Warp &warp, uint64_t address,
                              unsigned bytes, unsigned lane, Access access) {
  fault(Fault::Kind::illegalAddress, lane,
        absl::StrFormat("illegal %s of %u bytes at shared address 0x%x: the "
                        "block's shared memory is 0x%x to 0x%x",
                        nameOf(access), bytes, address, sharedBegin,
                        warp.block->shared.size()));
}

[[noreturn]] void raceAt(const Warp &warp, uint64_t address, int other,
                         unsigned lane, Access access) {
  fault(Fault::Kind::race, lane,
        absl::StrFormat("race at shared address 0x%x: this %s of warp %u "
                        "and an access of warp %d have no barrier "
                        "between them",
                        address, nameOf(access), warp.index, other));
}

/// Lanes often read what another lane of the instruction does: a second look at
/// the same bytes would find what the first has found.
void checkRaces(Warp &warp, const LaneAddresses &addresses, Mask active,
                unsigned bytes, Access access) {
  unsigned shift = unsigned(__builtin_ctz(bytes));
  std::array<uint32_t, numLanes> checked;
  checked.fill(~0u);
  eachLane(active, [&](unsigned lane) {
    auto address = uint32_t(addresses[lane]);
    uint32_t &last = checked[(address >> shift) % numLanes];
    if (last == address)
      return;
    last = address;
    int other = warp.block->races.access(address, bytes, warp.index, access);
    if (other >= 0)
      raceAt(warp, address, other, lane, access);
  });
}

void resolveShared(Warp &warp, const LaneAddresses &addresses, Mask active,
                   unsigned bytes, Access access, Pointers &to) {
  Block &block = *warp.block;
  if (!covers(Range{sharedBegin, block.shared.size()},
              spanOf(addresses, active), bytes))
    eachLane(active, [&](unsigned lane) { // up to the first that is wrong
      sharedAt(warp, addresses[lane], bytes, lane, access);
    });
  for (unsigned l = 0; l < numLanes; ++l)
    to[l] = block.shared.data() + addresses[l];
  if (block.races.enabled())
    checkRaces(warp, addresses, active, bytes, access);
  if (access != Access::read)
    eachLane(active, [&](unsigned lane) {
      block.genericWrites.write(uint32_t(addresses[lane]), bytes, warp.index,
                                warp.proxyFences);
    });
}

/// Shared memory but also local memory and parameters are small: lane by lane.
void resolveLocal(Warp &warp, const LaneAddresses &addresses, Mask active,
                  unsigned bytes, Access access, Pointers &to) {
  uint32_t size = warp.block->launch->program->localBytes;
  eachLane(active, [&](unsigned lane) {
    if (!Range{localBegin, size}.covers(addresses[lane], bytes))
      fault(Fault::Kind::illegalAddress, lane,
            absl::StrFormat("illegal %s of %u bytes at local address 0x%x: "
                            "the thread's local memory is 0x%x to 0x%x",
                            nameOf(access), bytes, addresses[lane], localBegin,
                            size));
    to[lane] = warp.local + size_t(lane) * size + addresses[lane];
  });
}

void resolveParameter(Warp &warp, const LaneAddresses &addresses, Mask active,
                      unsigned bytes, Access access, Pointers &to) {
  const Launch &launch = *warp.block->launch;
  uint32_t size = launch.program->parameterBytes;
  eachLane(active, [&](unsigned lane) {
    if (access != Access::read ||
        !Range{0, size}.covers(addresses[lane], bytes))
      fault(Fault::Kind::illegalAddress, lane,
            absl::StrFormat("illegal %s of %u bytes at parameter address 0x%x: "
                            "the %u bytes of parameters can only be read",
                            nameOf(access), bytes, addresses[lane], size));
    to[lane] = const_cast<std::byte *>(launch.parameters) + addresses[lane];
  });
}

/// Each window that lanes point to in turn.
void resolveGeneric(Warp &warp, const LaneAddresses &addresses, Mask active,
                    unsigned bytes, Access access, Pointers &to) {
  while (active) {
    uint64_t base = addresses[unsigned(__builtin_ctz(active))] & window::mask;
    LaneAddresses inside = addresses;
    Mask same = 0;
    eachLane(active, [&](unsigned lane) {
      if ((addresses[lane] & window::mask) == base)
        same |= Mask(1) << lane;
    });
    active &= ~same;
    bool isWindow = base == window::shared || base == window::local ||
                    base == window::param;
    for (uint64_t &address : inside)
      address -= isWindow ? base : 0;
    auto *resolveIn = base == window::shared  ? resolveShared
                      : base == window::local ? resolveLocal
                      : base == window::param ? resolveParameter
                                              : resolveGlobal;
    Pointers found; // of other lanes anything
    resolveIn(warp, inside, same, bytes, access, found);
    eachLane(same, [&](unsigned lane) { to[lane] = found[lane]; });
  }
}

constexpr std::string_view spaceNames[] = {
    "global", "shared", "shared::cta",  "shared::cluster", "local",
    "const",  "param",  "param::entry", "param::func"};
constexpr Space spacesNamed[] = {Space::global, Space::shared, Space::shared,
                                 Space::shared, Space::local,  Space::constant,
                                 Space::param,  Space::param,  Space::param};

} // namespace

std::byte *sharedAt(Warp &warp, uint64_t address, uint32_t bytes, unsigned lane,
                    Access access) {
  Block &block = *warp.block;
  if (!Range{sharedBegin, block.shared.size()}.covers(address, bytes))
    outOfShared(warp, address, bytes, lane, access);
  if (!block.races.enabled())
    return &block.shared[address];
  int other = block.races.access(uint32_t(address), bytes, warp.index, access);
  if (other >= 0)
    raceAt(warp, address, other, lane, access);
  return &block.shared[address];
}

std::byte *globalAt(Warp &warp, uint64_t address, uint32_t bytes, unsigned lane,
                    Access access) {
  checkGlobal(warp, address, bytes, lane, access);
  return reinterpret_cast<std::byte *>(address);
}

LaneAddresses addressesOf(Warp &warp, const Instruction &i) {
  return sum(warp, i.r[0], i.extra & 1, i.offset);
}
LaneAddresses secondAddressesOf(Warp &warp, const Instruction &i) {
  return sum(warp, i.r[1], i.extra & 2, i.offset2);
}

Pointers resolve(Warp &warp, Space space, const LaneAddresses &addresses,
                 Mask active, unsigned bytes, Access access) {
  checkAlignment(addresses, active, bytes);
  Pointers to;
  switch (space) {
  case Space::generic:
    resolveGeneric(warp, addresses, active, bytes, access, to);
    break;
  case Space::global:
  case Space::constant:
    resolveGlobal(warp, addresses, active, bytes, access, to);
    break;
  case Space::shared:
    resolveShared(warp, addresses, active, bytes, access, to);
    break;
  case Space::local:
    resolveLocal(warp, addresses, active, bytes, access, to);
    break;
  case Space::param:
    resolveParameter(warp, addresses, active, bytes, access, to);
    break;
  }
  return to;
}

void setAddress(Line &line, Instruction &i, const Line::Address &address,
                Space space) {
  // .param of an inlined function and of a call is memory of the lane.
  bool inFunction = line.decoder.returnLabel().has_value();
  if (space == Space::param &&
      (address.space == Space::local ||
       (address.space == Space::generic && inFunction)))
    space = Space::local;
  i.r[0] = address.base;
  i.offset = address.offset;
  i.extra = (i.extra & ~1) | (address.wide ? 1 : 0);
  // A generic access to a variable by its name means the variable's space.
  i.space = space == Space::generic ? address.space : space;
}

Space takeSpace(Line &line) {
  int index = line.takeOneOf(spaceNames);
  return index < 0 ? Space::generic : spacesNamed[index];
}

void takeOrderAndCaches(Line &line) {
  static constexpr std::string_view orders[] = {
      "weak", "relaxed", "acquire", "release", "acq_rel", "volatile"};
  static constexpr std::string_view scopes[] = {"cta", "cluster", "gpu", "sys"};
  static constexpr std::string_view caches[] = {"ca", "cg", "cs", "lu",
                                                "cv", "wb", "wt"};
  line.takeOneOf(orders);
  line.takeOneOf(scopes);
  line.takeOneOf(caches);
  line.take("nc");
  line.take("unified");
  while (line.takePrefix("L1::") || line.takePrefix("L2::")) {
  }
}

} // namespace meshwork::ptx
