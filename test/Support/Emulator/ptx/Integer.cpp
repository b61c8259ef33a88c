#include "test/Support/Emulator/ptx/Arithmetic.h"

#include <limits>

namespace meshwork::ptx {
namespace {

/// Arithmetic that wraps: unsigned, and wide enough not to be promoted to int.
template <class T>
using Wrap =
    std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
template <size_t bytes, bool isSigned> struct WideOf;
template <> struct WideOf<2, false> {
  using type = uint32_t;
};
template <> struct WideOf<2, true> {
  using type = int32_t;
};
template <> struct WideOf<4, false> {
  using type = uint64_t;
};
template <> struct WideOf<4, true> {
  using type = int64_t;
};
template <> struct WideOf<8, false> {
  using type = unsigned __int128;
};
template <> struct WideOf<8, true> {
  using type = __int128;
};
template <class T>
using Wide = typename WideOf<sizeof(T), std::is_signed_v<T>>::type;

template <class T> T add(T a, T b) { return T(Wrap<T>(a) + Wrap<T>(b)); }
template <class T> T sub(T a, T b) { return T(Wrap<T>(a) - Wrap<T>(b)); }
template <class T> T mulLow(T a, T b) { return T(Wrap<T>(a) * Wrap<T>(b)); }
template <class T> T mulHigh(T a, T b) {
  return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
}
template <class T> Wide<T> mulWide(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
template <class T> T madLow(T a, T b, T c) { return add(mulLow(a, b), c); }
template <class T> T madHigh(T a, T b, T c) { return add(mulHigh(a, b), c); }
template <class T> Wide<T> madWide(T a, T b, Wide<T> c) {
  return add(mulWide(a, b), c);
}
int32_t addSaturated(int32_t a, int32_t b) {
  int64_t sum = int64_t(a) + b;
  return int32_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}
int32_t subSaturated(int32_t a, int32_t b) {
  int64_t sum = int64_t(a) - b;
  return int32_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}
template <class T> bool overflows(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() &&
         b == T(-1);
}
/// Division by zero gives all ones (unspecified by the ISA; it must not stop
/// this process, where lanes that do not take part are divided as well).
template <class T> T div(T a, T b) {
  return b == 0 ? T(-1) : overflows(a, b) ? a : T(a / b);
}
template <class T> T rem(T a, T b) {
  return b == 0 ? a : overflows(a, b) ? T(0) : T(a % b);
}
template <class T> T minimum(T a, T b) { return b < a ? b : a; }
template <class T> T maximum(T a, T b) { return a < b ? b : a; }
template <class T> T magnitude(T a) { return a < 0 ? sub(T(0), a) : a; }
template <class T> T negative(T a) { return sub(T(0), a); }

#define MESHWORK_PICK_INTEGER(line, type, F)                                   \
  pick<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(               \
      line, type, []<class T>() { return lanes<&F<T>>; })

void emitBinary(Line &line, Type type, Handler handler) {
  line.emit(handler,
            {line.dest(0, type), line.source(1, type), line.source(2, type)});
}

Type widened(Line &line, Type type) {
  switch (type) {
  case Type::u16:
    return Type::u32;
  case Type::s16:
    return Type::s32;
  case Type::u32:
    return Type::u64;
  case Type::s32:
    return Type::s64;
  default:
    line.fail("no wider type");
  }
}

// Carries: a bit for each lane, set by .cc and read by addc and subc.
template <class T, bool subtract, bool reads, bool sets>
void withCarry(Warp &warp, const Instruction &i, Mask active) {
  const T *a = warp.at<T>(i.r[1]), *b = warp.at<T>(i.r[2]);
  T *to = warp.at<T>(i.r[0]);
  Mask carry = warp.carry;
  eachLane(active, [&](unsigned lane) {
    unsigned __int128 in = reads ? carry >> lane & 1 : 0;
    unsigned __int128 wide = subtract
                                 ? (unsigned __int128)(a[lane]) - b[lane] - in
                                 : (unsigned __int128)(a[lane]) + b[lane] + in;
    to[lane] = T(wide);
    Mask out = Mask(wide >> (8 * sizeof(T)) & 1) << lane;
    if (sets)
      carry = (carry & ~(Mask(1) << lane)) | out;
  });
  warp.carry = carry;
}
template <bool subtract, bool reads> void decodeCarry(Line &line, bool sets) {
  Type type = line.type();
  bool wide = bitsOf(type) == 64;
  Handler handler = wide ? (sets ? withCarry<uint64_t, subtract, reads, true>
                                 : withCarry<uint64_t, subtract, reads, false>)
                         : (sets ? withCarry<uint32_t, subtract, reads, true>
                                 : withCarry<uint32_t, subtract, reads, false>);
  emitBinary(line, type, handler);
}

void decodeAdd(Line &line) {
  if (line.take("cc"))
    return decodeCarry<false, false>(line, true);
  Type type = line.type();
  if (isFloat(type))
    return floatAdd(line, type);
  if (type == Type::s32 && line.take("sat"))
    return emitBinary(line, type, lanes<&addSaturated>);
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, add));
}
void decodeSub(Line &line) {
  if (line.take("cc"))
    return decodeCarry<true, false>(line, true);
  Type type = line.type();
  if (isFloat(type))
    return floatSub(line, type);
  if (type == Type::s32 && line.take("sat"))
    return emitBinary(line, type, lanes<&subSaturated>);
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, sub));
}
void decodeMul(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatMul(line, type);
  if (line.take("wide")) {
    uint32_t to = line.dest(0, widened(line, type));
    Handler handler = pick<uint16_t, int16_t, uint32_t, int32_t>(
        line, type, []<class T>() { return lanes<&mulWide<T>>; });
    line.emit(handler, {to, line.source(1, type), line.source(2, type)});
  } else if (line.take("hi")) {
    emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, mulHigh));
  } else {
    if (!line.take("lo"))
      line.fail(".lo, .hi or .wide is missing");
    emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, mulLow));
  }
}
void decodeMad(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatFma(line, type);
  Type sum = type;
  Handler handler;
  if (line.take("wide")) {
    sum = widened(line, type);
    handler = pick<uint16_t, int16_t, uint32_t, int32_t>(
        line, type, []<class T>() { return lanes<&madWide<T>>; });
  } else if (line.take("hi")) {
    handler = MESHWORK_PICK_INTEGER(line, type, madHigh);
  } else {
    if (!line.take("lo"))
      line.fail(".lo, .hi or .wide is missing");
    handler = MESHWORK_PICK_INTEGER(line, type, madLow);
  }
  line.emit(handler, {line.dest(0, sum), line.source(1, type),
                      line.source(2, type), line.source(3, sum)});
}
void decodeDiv(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatDiv(line, type);
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, div));
}
void decodeRem(Line &line) {
  Type type = line.type();
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, rem));
}
void decodeMin(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatMin(line, type);
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, minimum));
}
void decodeMax(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatMax(line, type);
  emitBinary(line, type, MESHWORK_PICK_INTEGER(line, type, maximum));
}
void decodeAbs(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatAbs(line, type);
  Handler handler = pick<int16_t, int32_t, int64_t>(
      line, type, []<class T>() { return lanes<&magnitude<T>>; });
  line.emit(handler, {line.dest(0, type), line.source(1, type)});
}
void decodeNeg(Line &line) {
  Type type = line.type();
  if (isFloat(type))
    return floatNeg(line, type);
  Handler handler = pick<int16_t, int32_t, int64_t>(
      line, type, []<class T>() { return lanes<&negative<T>>; });
  line.emit(handler, {line.dest(0, type), line.source(1, type)});
}
void decodeAddc(Line &line) { decodeCarry<false, true>(line, line.take("cc")); }
void decodeSubc(Line &line) { decodeCarry<true, true>(line, line.take("cc")); }

} // namespace

std::span<const Opcode> integerOpcodes() {
  static constexpr Opcode list[] = {
      {"add", decodeAdd}, {"sub", decodeSub},   {"mul", decodeMul},
      {"mad", decodeMad}, {"div", decodeDiv},   {"rem", decodeRem},
      {"min", decodeMin}, {"max", decodeMax},   {"abs", decodeAbs},
      {"neg", decodeNeg}, {"addc", decodeAddc}, {"subc", decodeSubc}};
  return list;
}

} // namespace meshwork::ptx
