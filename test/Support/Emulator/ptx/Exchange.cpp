// Instructions in which lanes of a warp exchange values. The warp's loop holds
// them back until every lane of the mask is there (Flow::gather).
#include "test/Support/Emulator/ptx/Lanes.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace meshwork::ptx {
namespace {

/// f(party) for each set of active lanes that named the same mask.
template <class F>
void eachParty(Warp &warp, const Instruction &i, Mask active, F f) {
  const Mask *named = warp.at<Mask>(i.together);
  while (active) {
    Mask mask = named[__builtin_ctz(active)], party = 0;
    for (unsigned lane = 0; lane < numLanes; ++lane)
      party |= Mask(named[lane] == mask) << lane;
    party &= active;
    f(party);
    active &= ~party;
  }
}

enum class Shuffle { up, down, bfly, idx };
struct Source {
  unsigned lane;
  bool inRange;
};
/// PTX ISA 8.8, 9.7.9.6: c holds the last lane and, above, a segment's mask.
template <Shuffle mode> Source sourceOf(unsigned lane, uint32_t b, uint32_t c) {
  unsigned clamp = c & 31, segment = c >> 8 & 31, amount = b & 31;
  unsigned last = (lane & segment) | (clamp & ~segment & 31);
  unsigned first = lane & segment;
  int from = mode == Shuffle::up     ? int(lane) - int(amount)
             : mode == Shuffle::down ? int(lane + amount)
             : mode == Shuffle::bfly ? int(lane ^ amount)
                                     : int(first | (amount & ~segment & 31));
  bool inRange = mode == Shuffle::up ? from >= int(last) : from <= int(last);
  return {inRange ? unsigned(from) : lane, inRange};
}
[[noreturn]] void absentSource(unsigned lane, unsigned source) {
  throw Fault{Fault::Kind::lanes,
              absl::StrCat("the lane reads from lane ", source,
                           ", which does not take part"),
              int(lane)};
}
/// r[0] to, r[1] predicate, r[2] a, r[3] b, r[4] c.
template <Shuffle mode>
void shuffle(Warp &warp, const Instruction &i, Mask active) {
  const uint32_t *a = warp.at<uint32_t>(i.r[2]), *b = warp.at<uint32_t>(i.r[3]),
                 *c = warp.at<uint32_t>(i.r[4]);
  alignas(64) uint32_t result[numLanes] = {};
  Mask inRange = 0;
  eachParty(warp, i, active, [&](Mask party) {
    eachLane(party, [&](unsigned lane) {
      Source source = sourceOf<mode>(lane, b[lane], c[lane]);
      if (party != allLanes && !(party >> source.lane & 1))
        absentSource(lane, source.lane);
      result[lane] = a[source.lane];
      inRange |= Mask(source.inRange) << lane;
    });
  });
  writeLanes(warp.at<uint32_t>(i.r[0]), result, active);
  warp.setPredicate(i.r[1], inRange, active);
}

/// r[0] to, r[1] the predicate; `extra`: it is negated.
enum class Vote { all, any, uniform, ballot };
template <Vote kind> void vote(Warp &warp, const Instruction &i, Mask active) {
  Mask p = warp.predicate(i.r[1]) ^ (i.extra ? allLanes : 0);
  eachParty(warp, i, active, [&](Mask party) {
    Mask yes = p & party;
    if constexpr (kind == Vote::ballot) {
      uint32_t *to = warp.at<uint32_t>(i.r[0]);
      eachLane(party, [&](unsigned lane) { to[lane] = yes; });
    } else {
      bool result = kind == Vote::all   ? yes == party
                    : kind == Vote::any ? yes != 0
                                        : yes == party || yes == 0;
      warp.setPredicate(i.r[0], result ? allLanes : 0, party);
    }
  });
}

/// r[0] to, r[1] predicate (.all only), r[2] values.
template <class T, bool all>
void match(Warp &warp, const Instruction &i, Mask active) {
  const T *values = warp.at<T>(i.r[2]);
  uint32_t *to = warp.at<uint32_t>(i.r[0]);
  eachParty(warp, i, active, [&](Mask party) {
    eachLane(party, [&](unsigned lane) {
      Mask same = 0;
      eachLane(party, [&](unsigned other) {
        same |= Mask(values[other] == values[lane]) << other;
      });
      bool everyone = same == party;
      to[lane] = !all ? same : everyone ? party : 0;
      warp.setPredicate(all ? i.r[1] : noRegister, everyone ? allLanes : 0,
                        Mask(1) << lane);
    });
  });
}

template <class T> T sumOf(T a, T b) { return T(uint32_t(a) + uint32_t(b)); }
template <class T> T minOf(T a, T b) { return std::min(a, b); }
template <class T> T maxOf(T a, T b) { return std::max(a, b); }
uint32_t andOf(uint32_t a, uint32_t b) { return a & b; }
uint32_t orOf(uint32_t a, uint32_t b) { return a | b; }
uint32_t xorOf(uint32_t a, uint32_t b) { return a ^ b; }

template <class T, T (*op)(T, T)>
void reduce(Warp &warp, const Instruction &i, Mask active) {
  const T *values = warp.at<T>(i.r[1]);
  T *to = warp.at<T>(i.r[0]);
  eachParty(warp, i, active, [&](Mask party) {
    T result = values[__builtin_ctz(party)];
    eachLane(party & (party - 1),
             [&](unsigned lane) { result = op(result, values[lane]); });
    eachLane(party, [&](unsigned lane) { to[lane] = result; });
  });
}

/// r[0] to, r[1] predicate: the lowest lane of the party is elected.
void elect(Warp &warp, const Instruction &i, Mask active) {
  uint32_t *to = warp.at<uint32_t>(i.r[0]);
  eachParty(warp, i, active, [&](Mask party) {
    unsigned leader = unsigned(__builtin_ctz(party));
    eachLane(party, [&](unsigned lane) { to[lane] = leader; });
    warp.setPredicate(i.r[1], Mask(1) << leader, party);
  });
}
void readActive(Warp &warp, const Instruction &i, Mask active) {
  uint32_t *to = warp.at<uint32_t>(i.r[0]);
  eachLane(active, [&](unsigned lane) { to[lane] = active; });
}

void requireSync(Line &line) {
  if (!line.take("sync"))
    line.fail("the form without .sync does not exist since sm_70");
}

void decodeShfl(Line &line) {
  static constexpr std::string_view modes[] = {"up", "down", "bfly", "idx"};
  static constexpr Handler handlers[] = {
      shuffle<Shuffle::up>, shuffle<Shuffle::down>, shuffle<Shuffle::bfly>,
      shuffle<Shuffle::idx>};
  requireSync(line);
  int mode = line.takeOneOf(modes);
  Type type = line.type();
  if (mode < 0 || bitsOf(type) != 32)
    line.fail("the mode is missing or the type has not 32 bits");
  uint32_t to = line.dest(0, type);
  uint32_t predicate = line.destPredicate(line.operand(0).second);
  uint32_t a = line.source(1, type), b = line.source(2, Type::u32),
           c = line.source(3, Type::u32), mask = line.source(4, Type::u32);
  line.emit(handlers[mode], {to, predicate, a, b, c}, Flow::gather).together =
      mask;
}
void decodeVote(Line &line) {
  static constexpr std::string_view modes[] = {"all", "any", "uni", "ballot"};
  static constexpr Handler handlers[] = {vote<Vote::all>, vote<Vote::any>,
                                         vote<Vote::uniform>,
                                         vote<Vote::ballot>};
  requireSync(line);
  int mode = line.takeOneOf(modes);
  if (mode < 0)
    line.fail("the mode is missing");
  uint32_t to = line.dest(0, line.type()), p = line.source(1, Type::pred),
           mask = line.source(2, Type::u32);
  Instruction &i = line.emit(handlers[mode], {to, p}, Flow::gather);
  i.extra = line.operand(1).negated;
  i.together = mask;
}
void decodeMatch(Line &line) {
  requireSync(line);
  bool all = line.take("all");
  if (!all && !line.take("any"))
    line.fail("the mode is missing");
  Type type = line.type();
  bool wide = bitsOf(type) == 64;
  Handler handler =
      all ? (wide ? match<uint64_t, true> : match<uint32_t, true>)
          : (wide ? match<uint64_t, false> : match<uint32_t, false>);
  uint32_t to = line.dest(0, Type::b32);
  uint32_t predicate = line.destPredicate(line.operand(0).second);
  uint32_t a = line.source(1, type), mask = line.source(2, Type::u32);
  line.emit(handler, {to, predicate, a}, Flow::gather).together = mask;
}
void decodeRedux(Line &line) {
  static constexpr std::string_view ops[] = {"add", "min", "max",
                                             "and", "or",  "xor"};
  using I = int32_t;
  using U = uint32_t;
  static constexpr Handler handlers[2][6] = {
      {reduce<U, sumOf<U>>, reduce<U, minOf<U>>, reduce<U, maxOf<U>>,
       reduce<U, andOf>, reduce<U, orOf>, reduce<U, xorOf>},
      {reduce<I, sumOf<I>>, reduce<I, minOf<I>>, reduce<I, maxOf<I>>}};
  requireSync(line);
  int op = line.takeOneOf(ops);
  Type type = line.type();
  bool known = type == Type::b32 || type == Type::u32 || type == Type::s32;
  if (op < 0 || !known || !handlers[type == Type::s32][op])
    line.fail("this operation and type are not modelled");
  uint32_t to = line.dest(0, type), a = line.source(1, type),
           mask = line.source(2, Type::u32);
  line.emit(handlers[type == Type::s32][op], {to, a}, Flow::gather).together =
      mask;
}
void decodeElect(Line &line) {
  requireSync(line);
  uint32_t to = line.dest(0, Type::b32);
  uint32_t predicate = line.destPredicate(line.operand(0).second);
  uint32_t mask = line.source(1, Type::u32);
  line.emit(elect, {to, predicate}, Flow::gather).together = mask;
}
void decodeActivemask(Line &line) {
  line.emit(readActive, {line.dest(0, line.type())});
}

} // namespace

std::span<const Opcode> exchangeOpcodes() {
  static constexpr Opcode list[] = {
      {"shfl", decodeShfl},   {"vote", decodeVote},
      {"match", decodeMatch}, {"redux", decodeRedux},
      {"elect", decodeElect}, {"activemask", decodeActivemask}};
  return list;
}

} // namespace meshwork::ptx
