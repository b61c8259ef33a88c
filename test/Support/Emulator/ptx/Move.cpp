#include "test/Support/Emulator/ptx/Lanes.h"

#include <chrono>

namespace meshwork::ptx {
namespace {

template <class T> T same(T value) { return value; }
Handler copyOf(unsigned bits) {
  return bits == 16   ? lanes<&same<uint16_t>>
         : bits == 32 ? lanes<&same<uint32_t>>
                      : lanes<&same<uint64_t>>;
}
void copyPredicate(Warp &warp, const Instruction &i, Mask active) {
  warp.setPredicate(i.r[0], warp.predicate(i.r[1]), active);
}

/// r[0] = r[1], r[2], ... from the low bits up.
template <class To, class Part>
void pack(Warp &warp, const Instruction &i, Mask active) {
  alignas(64) To result[numLanes] = {};
  for (unsigned part = 0; part < sizeof(To) / sizeof(Part); ++part) {
    const Part *from = warp.at<Part>(i.r[1 + part]);
    for (unsigned l = 0; l < numLanes; ++l)
      result[l] |= To(To(from[l]) << (part * 8 * sizeof(Part)));
  }
  writeLanes(warp.at<To>(i.r[0]), result, active);
}
/// r[1], r[2], ... = r[0].
template <class From, class Part>
void unpack(Warp &warp, const Instruction &i, Mask active) {
  const From *from = warp.at<From>(i.r[0]);
  for (unsigned part = 0; part < sizeof(From) / sizeof(Part); ++part) {
    alignas(64) Part result[numLanes];
    for (unsigned l = 0; l < numLanes; ++l)
      result[l] = Part(from[l] >> (part * 8 * sizeof(Part)));
    writeLanes(warp.at<Part>(i.r[1 + part]), result, active);
  }
}

struct Packing {
  unsigned whole, part;
  Handler pack, unpack;
};
constexpr Packing packings[] = {
    {16, 8, pack<uint16_t, uint8_t>, unpack<uint16_t, uint8_t>},
    {32, 8, pack<uint32_t, uint8_t>, unpack<uint32_t, uint8_t>},
    {32, 16, pack<uint32_t, uint16_t>, unpack<uint32_t, uint16_t>},
    {64, 16, pack<uint64_t, uint16_t>, unpack<uint64_t, uint16_t>},
    {64, 32, pack<uint64_t, uint32_t>, unpack<uint64_t, uint32_t>}};

Type bitsType(unsigned bits) {
  return bits == 8    ? Type::b8
         : bits == 16 ? Type::b16
         : bits == 32 ? Type::b32
                      : Type::b64;
}

const Packing &packing(Line &line, Type whole, size_t parts) {
  for (const Packing &each : packings)
    if (each.whole == bitsOf(whole) && each.part * parts == each.whole)
      return each;
  line.fail("values of these widths do not make one register");
}

void decodePack(Line &line, Type type) {
  std::vector<Operand> parts = line.items(1);
  const Packing &found = packing(line, type, parts.size());
  uint32_t r[9] = {line.dest(0, type)};
  for (size_t i = 0; i < parts.size(); ++i)
    r[1 + i] = line.source(parts[i], bitsType(found.part));
  std::copy(r, r + 9, line.emit(found.pack, {}).r.begin());
}
void decodeUnpack(Line &line, Type type) {
  std::vector<Operand> parts = line.items(0);
  const Packing &found = packing(line, type, parts.size());
  uint32_t r[9] = {line.source(1, type)};
  for (size_t i = 0; i < parts.size(); ++i)
    r[1 + i] = line.dest(parts[i], bitsType(found.part));
  std::copy(r, r + 9, line.emit(found.unpack, {}).r.begin());
}

uint64_t nanoseconds() {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count());
}
/// %clock counts instructions of the warp, %globaltimer nanoseconds.
template <class T, bool timer, unsigned shift>
void readClock(Warp &warp, const Instruction &i, Mask active) {
  uint64_t value = (timer ? nanoseconds() : warp.instructions) >> shift;
  T *to = warp.at<T>(i.r[0]);
  eachLane(active, [&](unsigned lane) { to[lane] = T(value); });
}
bool decodeClock(Line &line, Type type) {
  const Operand &from = line.operand(1);
  if (from.kind != Operand::Kind::name)
    return false;
  Handler handler = from.name == "%clock"      ? readClock<uint32_t, false, 0>
                    : from.name == "%clock_hi" ? readClock<uint32_t, false, 32>
                    : from.name == "%clock64"  ? readClock<uint64_t, false, 0>
                    : from.name == "%globaltimer" ? readClock<uint64_t, true, 0>
                    : from.name == "%globaltimer_lo"
                        ? readClock<uint32_t, true, 0>
                        : nullptr;
  if (handler)
    line.emit(handler, {line.dest(0, type)});
  return handler;
}

void decodeMov(Line &line) {
  Type type = line.type();
  if (line.operand(0).kind == Operand::Kind::list)
    return decodeUnpack(line, type);
  if (line.operand(1).kind == Operand::Kind::list)
    return decodePack(line, type);
  if (decodeClock(line, type))
    return;
  uint32_t to = line.dest(0, type), from = line.source(1, type);
  line.emit(type == Type::pred ? copyPredicate : copyOf(bitsOf(type)),
            {to, from});
}

/// r[0] = r[1] + offset.
void addOffset(Warp &warp, const Instruction &i, Mask active) {
  const uint64_t *from = warp.at<uint64_t>(i.r[1]);
  alignas(64) uint64_t result[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    result[l] = from[l] + uint64_t(i.offset);
  writeLanes(warp.at<uint64_t>(i.r[0]), result, active);
}

constexpr std::string_view spaceNames[] = {
    "shared", "shared::cta",  "shared::cluster", "local",
    "param",  "param::entry", "global",          "const"};
constexpr uint64_t spaceWindows[] = {window::shared,
                                     window::shared,
                                     window::shared,
                                     window::local,
                                     window::param,
                                     window::param,
                                     0,
                                     0};

void decodeCvta(Line &line) {
  bool toSpace = line.take("to");
  int space = line.takeOneOf(spaceNames);
  if (space < 0)
    line.fail("a state space that is modelled is missing");
  Type type = line.type();
  if (bitsOf(type) != 64)
    line.fail("addresses have 64 bits");
  uint32_t to = line.dest(0, type), from = line.source(1, type);
  uint64_t base = spaceWindows[space];
  line.emit(addOffset, {to, from}).offset = int64_t(toSpace ? -base : base);
}

void isInSpace(Warp &warp, const Instruction &i, Mask active) {
  const uint64_t *from = warp.at<uint64_t>(i.r[1]);
  Mask result = 0;
  for (unsigned l = 0; l < numLanes; ++l)
    result |= Mask((from[l] & window::mask) == uint64_t(i.offset)) << l;
  warp.setPredicate(i.r[0], result, active);
}
void decodeIsspacep(Line &line) {
  int space = line.takeOneOf(spaceNames);
  if (space < 0)
    line.fail("a state space that is modelled is missing");
  line.emit(isInSpace, {line.dest(0, Type::pred), line.source(1, Type::b64)})
      .offset = int64_t(spaceWindows[space]);
}

} // namespace

std::span<const Opcode> moveOpcodes() {
  static constexpr Opcode list[] = {
      {"mov", decodeMov}, {"cvta", decodeCvta}, {"isspacep", decodeIsspacep}};
  return list;
}

} // namespace meshwork::ptx
