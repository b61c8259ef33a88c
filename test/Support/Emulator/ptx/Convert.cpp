#include "test/Support/Emulator/ptx/Lanes.h"

#include <limits>

namespace meshwork::ptx {
namespace {

enum Rounding : uint8_t { nearest, towardZero, down, up, nearestAway };

// The conversions that kernels are full of; the rest goes through `convert`.
template <class To, class From> To resize(From value) { return To(value); }
template <class To, class From> To narrow(From value) {
  return To(canonical(float(value)));
}
float widen(Bf16 value) { return canonical(float(value)); }
float widenHalf(Half value) { return canonical(float(value)); }
template <class From> float toFloat(From value) { return float(value); }
/// high is the first source.
template <class T> Pair<T> narrowPair(float high, float low) {
  return {T(canonical(low)), T(canonical(high))};
}
template <class T> Pair<T> narrowPairRelu(float high, float low) {
  auto relu = [](float x) { return x < 0 ? 0.f : x; };
  return {T(canonical(relu(low))), T(canonical(relu(high)))};
}

/// Exact for every source type: the format of x86-64 has 64 bits of fraction.
using Exact = long double;

Exact readExact(Type type, const std::byte *from) {
  auto load = [&]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  switch (type) {
  case Type::u8:
    return Exact(load(uint8_t()));
  case Type::s8:
    return Exact(load(int8_t()));
  case Type::u16:
    return Exact(load(uint16_t()));
  case Type::s16:
    return Exact(load(int16_t()));
  case Type::u32:
    return Exact(load(uint32_t()));
  case Type::s32:
    return Exact(load(int32_t()));
  case Type::u64:
    return Exact(load(uint64_t()));
  case Type::s64:
    return Exact(load(int64_t()));
  case Type::f16:
    return Exact(float(load(Half())));
  case Type::bf16:
    return Exact(float(load(Bf16())));
  case Type::f64:
    return Exact(load(double()));
  default:
    return Exact(load(float()));
  }
}

Exact roundToIntegral(Exact value, Rounding rounding) {
  switch (rounding) {
  case towardZero:
    return std::trunc(value);
  case down:
    return std::floor(value);
  case up:
    return std::ceil(value);
  case nearestAway:
    return std::round(value);
  case nearest:
    break;
  }
  return std::nearbyint(value);
}

/// To `bits` of significand with exponents down to `minExponent`.
Exact roundToFormat(Exact value, int bits, int minExponent, Rounding rounding) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int unit = std::max(std::ilogb(value), minExponent) - (bits - 1);
  return std::ldexp(roundToIntegral(std::ldexp(value, -unit), rounding), unit);
}
/// Beyond the largest number: infinity, or that number when rounding to zero
/// or away from that infinity.
Exact clampToFormat(Exact value, Exact largest, Rounding rounding) {
  if (!(std::fabs(value) > largest) || std::isinf(value))
    return value;
  bool stays = rounding == towardZero || (rounding == down && value > 0) ||
               (rounding == up && value < 0);
  return std::copysign(stays ? largest : Exact(INFINITY), value);
}

void writeFloat(Type type, Exact value, Rounding rounding, std::byte *to) {
  auto store = [&](auto result) { std::memcpy(to, &result, sizeof result); };
  auto fit = [&](int bits, int minExponent, Exact largest) {
    return clampToFormat(roundToFormat(value, bits, minExponent, rounding),
                         largest, rounding);
  };
  switch (type) {
  case Type::f16:
    return store(Half(canonical(float(fit(11, -14, 65504)))));
  case Type::bf16:
    return store(Bf16(canonical(float(fit(8, -126, 0x1.fep127L)))));
  case Type::tf32:
    return store(canonical(float(fit(11, -126, 0x1.ffcp127L))));
  case Type::f64:
    return store(double(fit(53, -1022, std::numeric_limits<double>::max())));
  default:
    return store(
        canonical(float(fit(24, -126, std::numeric_limits<float>::max()))));
  }
}

double powerOfTwo(int exponent) {
  return std::bit_cast<double>(uint64_t(1023 + exponent) << 52);
}
/// Of a number that is not negative; of zero, below all others.
int exponentOf(double value) {
  return int(std::bit_cast<uint64_t>(value) >> 52) - 1023;
}

/// A number of 8 bits, beyond its range the largest one (PTX ISA 8.8, cvt with
/// .satfinite), NaN as 0x7f.
/// A float's significand has 24 bits, so doubles are exact up to the rounding.
uint8_t writeFloat8(float value, int mantissa, int minExponent,
                    double largest) {
  if (std::isnan(value))
    return 0x7f;
  double magnitude = std::min<double>(std::fabs(value), largest);
  int exponent = std::max(exponentOf(magnitude), minExponent);
  int units = int(std::nearbyint(magnitude * powerOfTwo(mantissa - exponent)));
  int bits = ((exponent - minExponent) << mantissa) + units;
  return uint8_t(bits | (std::signbit(value) ? 0x80 : 0));
}
template <int Mantissa, int MinExponent, int Largest>
uint16_t narrowPairTo8(float high, float low) {
  auto narrow = [](float x) {
    return writeFloat8(x, Mantissa, MinExponent, Largest);
  };
  return uint16_t(narrow(high) << 8 | narrow(low));
}

/// Out of range gives the nearest end, NaN gives 0 (PTX ISA 8.8, cvt).
template <class T> void writeInteger(Exact value, std::byte *to) {
  Exact low = Exact(std::numeric_limits<T>::min()),
        high = Exact(std::numeric_limits<T>::max());
  T result = value != value  ? T(0)
             : value <= low  ? std::numeric_limits<T>::min()
             : value >= high ? std::numeric_limits<T>::max()
                             : T(value);
  std::memcpy(to, &result, sizeof result);
}
void writeInteger(Type type, Exact value, std::byte *to) {
  switch (type) {
  case Type::u8:
    return writeInteger<uint8_t>(value, to);
  case Type::s8:
    return writeInteger<int8_t>(value, to);
  case Type::u16:
    return writeInteger<uint16_t>(value, to);
  case Type::s16:
    return writeInteger<int16_t>(value, to);
  case Type::u32:
    return writeInteger<uint32_t>(value, to);
  case Type::s32:
    return writeInteger<int32_t>(value, to);
  case Type::u64:
    return writeInteger<uint64_t>(value, to);
  default:
    return writeInteger<int64_t>(value, to);
  }
}

/// How one cvt works; packed into Instruction::offset.
struct Conversion {
  Type to, from;
  Rounding rounding;
  bool integral, ftz, sat, relu;
};
static_assert(sizeof(Conversion) <= sizeof(int64_t));
bool isInteger(Type type) { return type >= Type::u8 && type <= Type::s64; }

Exact flushExact(Exact value) {
  return std::fabs(value) < 0x1p-126L ? std::copysign(Exact(0), value) : value;
}
void convertOne(const Conversion &c, const std::byte *from, std::byte *to) {
  Exact value = readExact(c.from, from);
  if (c.ftz && c.from == Type::f32)
    value = flushExact(value);
  if (c.integral)
    value = roundToIntegral(value, c.rounding);
  if (c.relu && value < 0)
    value = 0;
  if (c.sat && !isInteger(c.to))
    value = value > 0 ? std::min(value, Exact(1)) : Exact(0);
  if (isInteger(c.to))
    return writeInteger(c.to, value, to);
  writeFloat(c.to, value, c.rounding, to);
  if (c.ftz && c.to == Type::f32) {
    float written;
    std::memcpy(&written, to, sizeof written);
    written = flush(written);
    std::memcpy(to, &written, sizeof written);
  }
}
void convert(Warp &warp, const Instruction &i, Mask active) {
  Conversion conversion;
  std::memcpy(&conversion, &i.offset, sizeof conversion);
  unsigned to = bitsOf(conversion.to) / 8, from = bitsOf(conversion.from) / 8;
  eachLane(active, [&](unsigned lane) {
    convertOne(conversion, warp.at<std::byte>(i.r[1]) + lane * from,
               warp.at<std::byte>(i.r[0]) + lane * to);
  });
}

template <class To> Handler resizeTo(Line &line, Type from) {
  return pick<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
              int64_t>(line, from,
                       []<class T>() { return lanes<&resize<To, T>>; });
}
/// Between integers without .sat: bits are dropped, or the source extended.
Handler integerResize(Line &line, Type to, Type from) {
  return pick<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
              int64_t>(line, to,
                       [&]<class T>() { return resizeTo<T>(line, from); });
}

/// The handler of a frequent conversion, else null.
Handler frequent(Line &line, const Conversion &c) {
  if (c.sat || c.ftz || c.relu)
    return nullptr;
  if (isInteger(c.to) && isInteger(c.from))
    return integerResize(line, c.to, c.from);
  if (c.integral || c.rounding != nearest)
    return nullptr;
  if (c.to == Type::f32 && c.from == Type::bf16)
    return lanes<&widen>;
  if (c.to == Type::f32 && c.from == Type::f16)
    return lanes<&widenHalf>;
  if (c.to == Type::bf16 && c.from == Type::f32)
    return lanes<&narrow<Bf16, float>>;
  if (c.to == Type::f16 && c.from == Type::f32)
    return lanes<&narrow<Half, float>>;
  if (c.to == Type::f32 && c.from == Type::s32)
    return lanes<&toFloat<int32_t>>;
  if (c.to == Type::f32 && c.from == Type::u32)
    return lanes<&toFloat<uint32_t>>;
  return nullptr;
}

bool takeRounding(Line &line, Conversion &c) {
  static constexpr std::string_view names[] = {"rn",  "rz",  "rm",  "rp", "rna",
                                               "rni", "rzi", "rmi", "rpi"};
  int index = line.takeOneOf(names);
  c.integral = index >= 5;
  c.rounding = Rounding(index < 0 ? 0 : index >= 5 ? index - 5 : index);
  return index >= 0;
}

void decodePair(Line &line, Type to, const Conversion &c) {
  Type from = line.type();
  if (from != Type::f32 || c.rounding != nearest)
    line.fail("packing from another type than .f32 or with another rounding "
              "than .rn is not modelled");
  bool half = to == Type::f16x2;
  Handler handler =
      c.relu
          ? (half ? lanes<&narrowPairRelu<Half>> : lanes<&narrowPairRelu<Bf16>>)
          : (half ? lanes<&narrowPair<Half>> : lanes<&narrowPair<Bf16>>);
  line.emit(handler,
            {line.dest(0, to), line.source(1, from), line.source(2, from)});
}

void decodePairTo8(Line &line, Type to, const Conversion &c, bool satfinite) {
  Type from = line.type();
  if (from != Type::f32 || c.rounding != nearest || !satfinite || c.relu)
    line.fail("8-bit floats but from .f32 with .rn.satfinite are not modelled");
  Handler handler = to == Type::e4m3x2 ? lanes<&narrowPairTo8<3, -6, 448>>
                                       : lanes<&narrowPairTo8<2, -14, 57344>>;
  line.emit(handler, {line.dest(0, Type::b16), line.source(1, from),
                      line.source(2, from)});
}

bool isFloatType(Type type) { return type >= Type::f16; }
unsigned significand(Type type) {
  return type == Type::f64    ? 53
         : type == Type::bf16 ? 8
         : type == Type::f32  ? 24
                              : 11;
}
/// Where a result can be inexact the ISA asks for a rounding.
void checkRounding(Line &line, const Conversion &c, bool rounds) {
  bool toInteger = isInteger(c.to) && isFloatType(c.from);
  bool inexact =
      isFloatType(c.to) &&
      (isInteger(c.from) ||
       (isFloatType(c.from) && significand(c.to) < significand(c.from)));
  if ((toInteger && !c.integral) || (inexact && !rounds))
    line.fail("a rounding is missing");
}

void decodeCvt(Line &line) {
  Conversion c{};
  bool rounds = takeRounding(line, c);
  c.ftz = line.take("ftz");
  c.sat = line.take("sat");
  bool satfinite = line.take("satfinite");
  c.relu = line.take("relu");
  c.to = line.type();
  if (c.to == Type::e4m3x2 || c.to == Type::e5m2x2)
    return decodePairTo8(line, c.to, c, satfinite);
  if (satfinite)
    line.fail(".satfinite is modelled for 8-bit floats only");
  if (c.to == Type::f16x2 || c.to == Type::bf16x2) {
    if (c.ftz || c.sat)
      line.fail(".ftz and .sat of pairs are not modelled");
    return decodePair(line, c.to, c);
  }
  c.from = line.type();
  if (c.from < Type::u8 || c.to < Type::u8 || c.from == Type::f16x2 ||
      c.from == Type::bf16x2 || c.to == Type::f32x2 || c.from >= Type::f32x2)
    line.fail("this pair of types is not modelled");
  checkRounding(line, c, rounds);
  Handler handler = frequent(line, c);
  Instruction &i = line.emit(handler ? handler : convert,
                             {line.dest(0, c.to), line.source(1, c.from)});
  std::memcpy(&i.offset, &c, sizeof c);
}

} // namespace

std::span<const Opcode> convertOpcodes() {
  static constexpr Opcode list[] = {{"cvt", decodeCvt}};
  return list;
}

} // namespace meshwork::ptx
