#include "test/Support/Emulator/ptx/Lanes.h"

namespace meshwork::ptx {
namespace {

enum class Compare {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};
/// The last four are the names of unsigned lt, le, gt, ge.
constexpr std::string_view compareNames[] = {
    "eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
    "leu", "gtu", "geu", "num", "nan", "lo", "ls",  "hi",  "hs"};

template <Compare compare, class T> bool holds(T a, T b) {
  if constexpr (isNarrowFloat<T>)
    return holds<compare>(float(a), float(b));
  else {
    bool unordered = a != a || b != b;
    switch (compare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b && !unordered;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return a == b || unordered;
    case Compare::neu:
      return a != b;
    case Compare::ltu:
      return !(a >= b);
    case Compare::leu:
      return !(a > b);
    case Compare::gtu:
      return !(a <= b);
    case Compare::geu:
      return !(a < b);
    case Compare::num:
      return !unordered;
    case Compare::nan:
      return unordered;
    }
  }
}
template <Compare compare> bool holdsFlushed(float a, float b) {
  return holds<compare>(flush(a), flush(b));
}

template <Compare compare> Handler comparison(Line &line, Type type) {
  if (type == Type::f32 && line.take("ftz"))
    return lanes<&holdsFlushed<compare>>;
  return pick<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, Half,
              Bf16, float, double>(
      line, type, []<class T>() { return lanes<&holds<compare, T>>; });
}
template <int... I>
Handler comparisonAt(int index, Line &line, Type type,
                     std::integer_sequence<int, I...>) {
  Handler handler = nullptr;
  ((I == index ? void(handler = comparison<Compare(I)>(line, type)) : void()),
   ...);
  return handler;
}
int takeCompare(Line &line) {
  int index = line.takeOneOf(compareNames);
  if (index < 0)
    line.fail("no comparison that is modelled");
  return index < 14 ? index : index - 14 + int(Compare::lt);
}
Handler comparison(int index, Line &line, Type type) {
  return comparisonAt(index, line, type, std::make_integer_sequence<int, 14>());
}

template <class T, bool high> T half(Pair<T> pair) {
  return high ? pair.high : pair.low;
}
/// Both halves of a packed register as registers of their own.
template <class T> uint32_t halfOf(Line &line, uint32_t from, bool high) {
  uint32_t to = line.scratch(Type::b16);
  line.emit(high ? lanes<&half<T, true>> : lanes<&half<T, false>>, {to, from});
  return to;
}

enum Bool { boolAnd, boolOr, boolXor, boolNone };
/// r[0] = r[2] op c, r[1] = (r[4] ? r[4] : !r[2]) op c, c in r[3].
void combine(Warp &warp, const Instruction &i, Mask active) {
  Mask p = warp.predicate(i.r[2]);
  Mask q = i.r[4] == noRegister ? ~p : warp.predicate(i.r[4]);
  if (i.count != boolNone) {
    Mask c = warp.predicate(i.r[3]) ^ (i.extra ? allLanes : 0);
    auto join = [&](Mask x) {
      return i.count == boolAnd ? x & c : i.count == boolOr ? x | c : x ^ c;
    };
    p = join(p);
    q = join(q);
  }
  warp.setPredicate(i.r[0], p, active);
  warp.setPredicate(i.r[1], q, active);
}

struct Halves {
  uint32_t low, high;
};
Halves comparePacked(Line &line, int compare, Type type) {
  bool half = type == Type::f16x2;
  uint32_t a = line.source(1, type), b = line.source(2, type);
  Handler handler = comparison(compare, line, half ? Type::f16 : Type::bf16);
  uint32_t result[2];
  for (int high = 0; high < 2; ++high) {
    auto part = [&](uint32_t from) {
      return half ? halfOf<Half>(line, from, high)
                  : halfOf<Bf16>(line, from, high);
    };
    result[high] = line.scratch(Type::pred);
    uint32_t x = part(a), y = part(b);
    line.emit(handler, {result[high], x, y});
  }
  return {result[0], result[1]};
}

void decodeSetp(Line &line) {
  static constexpr std::string_view boolNames[] = {"and", "or", "xor"};
  int compare = takeCompare(line), op = line.takeOneOf(boolNames);
  Type type = line.type();
  const Operand &to = line.operand(0);
  if (to.kind != Operand::Kind::name && to.kind != Operand::Kind::sink)
    line.fail("the destination is no predicate");
  uint32_t p = line.destPredicate(to.name), q = line.destPredicate(to.second);
  bool packed = type == Type::f16x2 || type == Type::bf16x2;
  Halves found{p, noRegister};
  if (packed) {
    found = comparePacked(line, compare, type);
  } else {
    if (op >= 0 || q != noRegister || p == noRegister)
      found.low = line.scratch(Type::pred);
    line.emit(comparison(compare, line, type),
              {found.low, line.source(1, type), line.source(2, type)});
    if (found.low == p)
      return;
  }
  uint32_t c = op < 0 ? noRegister : line.source(3, Type::pred);
  Instruction &i = line.emit(combine, {p, q, found.low, c, found.high});
  i.count = uint8_t(op < 0 ? boolNone : op);
  i.extra = op >= 0 && line.operand(3).negated;
}

template <class T> void select(Warp &warp, const Instruction &i, Mask active) {
  const T *a = warp.at<T>(i.r[1]), *b = warp.at<T>(i.r[2]);
  Mask p = warp.predicate(i.r[3]) ^ (i.extra ? allLanes : 0);
  alignas(64) T result[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    result[l] = p >> l & 1 ? a[l] : b[l];
  writeLanes(warp.at<T>(i.r[0]), result, active);
}
Handler selectOf(Type type) {
  return bitsOf(type) == 16   ? select<uint16_t>
         : bitsOf(type) == 32 ? select<uint32_t>
                              : select<uint64_t>;
}
void decodeSelp(Line &line) {
  Type type = line.type();
  uint32_t to = line.dest(0, type), a = line.source(1, type),
           b = line.source(2, type), p = line.source(3, Type::pred);
  line.emit(selectOf(type), {to, a, b, p}).extra = line.operand(3).negated;
}

void decodeSet(Line &line) {
  int compare = takeCompare(line);
  Type type = line.type(), from = line.type();
  uint32_t p = line.scratch(Type::pred), to = line.dest(0, type);
  line.emit(comparison(compare, line, from),
            {p, line.source(1, from), line.source(2, from)});
  uint64_t yes = type == Type::f32    ? 0x3f800000
                 : type == Type::f16  ? 0x3c00
                 : type == Type::bf16 ? 0x3f80
                                      : ~0ull;
  line.emit(selectOf(type), {to, line.decoder.constant(yes, bitsOf(type)),
                             line.decoder.constant(0, bitsOf(type)), p});
}

template <class T> bool notNegative(T value) { return value >= T(0); }
void decodeSlct(Line &line) {
  Type type = line.type(), sign = line.type();
  uint32_t p = line.scratch(Type::pred), to = line.dest(0, type);
  bool ftz = line.take("ftz"); // -0 is not negative, so flushing is no matter
  if (ftz && sign != Type::f32)
    line.fail(".ftz needs .f32");
  line.emit(sign == Type::f32 ? lanes<&notNegative<float>>
                              : lanes<&notNegative<int32_t>>,
            {p, line.source(3, sign)});
  line.emit(selectOf(type),
            {to, line.source(1, type), line.source(2, type), p});
}

} // namespace

std::span<const Opcode> compareOpcodes() {
  static constexpr Opcode list[] = {{"setp", decodeSetp},
                                    {"set", decodeSet},
                                    {"selp", decodeSelp},
                                    {"slct", decodeSlct}};
  return list;
}

} // namespace meshwork::ptx
