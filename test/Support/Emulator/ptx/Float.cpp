#include "test/Support/Emulator/ptx/Arithmetic.h"

namespace meshwork::ptx {
namespace {

template <bool ftz> float in(float value) { return ftz ? flush(value) : value; }
template <bool ftz> double in(double value) { return value; }
template <bool ftz> float out(float value) { return canonical(in<ftz>(value)); }
template <bool ftz> double out(double value) { return value; }

/// Subnormal bf16 are subnormal f32; no f16 instruction here has .ftz.
template <class T> constexpr bool flushesAsFloat = std::is_same_v<T, Bf16>;

/// Op on one T: narrow floats in float and rounded once (24 bits are more than
/// twice 11 or 8 and two, so that the sum, product or quotient rounds right).
template <class Op, bool ftz, class T, class... Ts> T apply(T a, Ts... rest) {
  if constexpr (isPair<T>)
    return {apply<Op, ftz>(a.low, rest.low...),
            apply<Op, ftz>(a.high, rest.high...)};
  else if constexpr (isNarrowFloat<T>)
    return T(out < ftz &&
             flushesAsFloat < T >>
                 (Op::of(in < ftz && flushesAsFloat < T >> (float(a)),
                         in < ftz && flushesAsFloat < T >> (float(rest))...)));
  else
    return out<ftz>(Op::of(in<ftz>(a), in<ftz>(rest)...));
}

#define MESHWORK_FLOAT_OP(Name, expression, ...)                               \
  struct Name {                                                                \
    template <class T> static T of(__VA_ARGS__) { return T(expression); }      \
  }
MESHWORK_FLOAT_OP(Add, a + b, T a, T b);
MESHWORK_FLOAT_OP(Sub, a - b, T a, T b);
MESHWORK_FLOAT_OP(Mul, a *b, T a, T b);
MESHWORK_FLOAT_OP(Div, a / b, T a, T b);
MESHWORK_FLOAT_OP(Rcp, T(1) / a, T a);
MESHWORK_FLOAT_OP(Sqrt, std::sqrt(a), T a);
MESHWORK_FLOAT_OP(Rsqrt, T(1) / std::sqrt(a), T a);
MESHWORK_FLOAT_OP(Exp2, std::exp2(a), T a);
MESHWORK_FLOAT_OP(Log2, std::log2(a), T a);
MESHWORK_FLOAT_OP(Sin, std::sin(a), T a);
MESHWORK_FLOAT_OP(Cos, std::cos(a), T a);
MESHWORK_FLOAT_OP(Tanh, std::tanh(a), T a);
#undef MESHWORK_FLOAT_OP

/// div.approx gives 0, or NaN for an infinite dividend, where the reciprocal
/// of the divisor is subnormal (PTX ISA 8.8, 9.7.3.8).
struct DivApproximate {
  static float of(float a, float b) {
    float size = std::fabs(b);
    bool large = size > 0x1p126f && size < INFINITY;
    float quotient = a / b;
    float beyond = std::isinf(a) ? NAN : std::copysign(0.f, quotient);
    return large ? beyond : quotient;
  }
};

template <class T> T fusedNarrow(T a, T b, T c) {
  double product = double(float(a)) * double(float(b)), addend = float(c);
  double sum = product + addend;
  double part = sum - product; // TwoSum: what the sum lost
  double error = (product - (sum - part)) + (addend - part);
  return sum != sum ? T(std::bit_cast<float>(nanBits))
                    : T(roundToOdd(sum, error));
}
struct Fma {
  static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double of(double a, double b, double c) { return std::fma(a, b, c); }
};
template <bool ftz, class T> T fused(T a, T b, T c) {
  if constexpr (isPair<T>)
    return {fused<ftz>(a.low, b.low, c.low),
            fused<ftz>(a.high, b.high, c.high)};
  else if constexpr (isNarrowFloat<T>)
    return fusedNarrow(a, b, c);
  else
    return apply<Fma, ftz>(a, b, c);
}

/// -0 is less than +0; a NaN loses, or wins when `nan`.
template <bool max, bool nan> struct Extreme {
  template <class T> static T of(T a, T b) {
    T ordered =
        a < b || (a == b && std::signbit(a)) ? (max ? b : a) : (max ? a : b);
    bool aNan = a != a, bNan = b != b;
    T number = aNan ? b : a;
    T unordered = nan ? T(NAN) : number;
    return aNan || bNan ? unordered : ordered;
  }
  template <class T> static T of(T a, T b, T c) { return of(of(a, b), c); }
};

template <class T> T clearSign(T value) {
  if constexpr (isPair<T>)
    return {clearSign(value.low), clearSign(value.high)};
  else if constexpr (isNarrowFloat<T>)
    return value.bits &= uint16_t(~T::sign), value;
  else
    return std::fabs(value);
}
template <class T> T flipSign(T value) {
  if constexpr (isPair<T>)
    return {flipSign(value.low), flipSign(value.high)};
  else if constexpr (isNarrowFloat<T>)
    return value.bits ^= T::sign, value;
  else
    return -value;
}
template <class T> T saturated(T value) {
  if constexpr (isPair<T>) {
    return {saturated(value.low), saturated(value.high)};
  } else {
    using F = std::conditional_t<isNarrowFloat<T>, float, T>;
    F x = F(value);
    return T(x > F(0) ? (x < F(1) ? x : F(1)) : F(0));
  }
}
float flushed(float value) { return flush(value); }
template <class T> T withSign(T sign, T value) {
  return std::copysign(value, sign);
}

#define MESHWORK_PICK_FLOAT(line, type, ...)                                   \
  pick<Half, Bf16, float, double, Pair<Half>, Pair<Bf16>, Pair<float>>(        \
      line, type, []<class T>() -> Handler { __VA_ARGS__ })

/// f16 and bf16 of .ftz are rare and not modelled.
bool takeFtz(Line &line, Type type) {
  bool flushes = type == Type::f32 || type == Type::f32x2;
  return flushes && line.take("ftz");
}
void saturate(Line &line, Type type, uint32_t to) {
  if (line.take("sat"))
    line.emit(MESHWORK_PICK_FLOAT(line, type, return lanes<&saturated<T>>;),
              {to, to});
}
template <class Op> Handler binary(Line &line, Type type, bool ftz) {
  return ftz ? MESHWORK_PICK_FLOAT(line, type,
                                   return lanes<&apply<Op, true, T, T>>;)
             : MESHWORK_PICK_FLOAT(line, type,
                                   return lanes<&apply<Op, false, T, T>>;);
}
template <class Op> void decodeBinary(Line &line, Type type) {
  line.take("rn"); // other roundings are not modelled
  uint32_t to = line.dest(0, type);
  line.emit(binary<Op>(line, type, takeFtz(line, type)),
            {to, line.source(1, type), line.source(2, type)});
  saturate(line, type, to);
}

template <bool max> void decodeExtreme(Line &line, Type type) {
  bool nan = line.take("NaN"), ftz = takeFtz(line, type);
  uint32_t to = line.dest(0, type), a = line.source(1, type),
           b = line.source(2, type);
  if (line.numOperands() == 3) {
    line.emit(nan ? binary<Extreme<max, true>>(line, type, ftz)
                  : binary<Extreme<max, false>>(line, type, ftz),
              {to, a, b});
    return;
  }
  if (type != Type::f32 || ftz)
    line.fail("three operands of this type are not modelled");
  using F = float;
  line.emit(nan ? lanes<&apply<Extreme<max, true>, false, F, F, F>>
                : lanes<&apply<Extreme<max, false>, false, F, F, F>>,
            {to, a, b, line.source(3, type)});
}

template <class Op> Handler unary(Line &line, Type type, bool ftz) {
  return pick<Half, Bf16, float, double, Pair<Half>, Pair<Bf16>>(
      line, type, [&]<class T>() -> Handler {
        return ftz ? lanes<&apply<Op, true, T>> : lanes<&apply<Op, false, T>>;
      });
}
/// ex2.approx and the like; `exact`: .rn is there too.
template <class Op> void decodeUnary(Line &line) {
  Type type = line.type();
  bool exact = line.take("rn");
  if (!exact && !line.take("approx"))
    line.fail(".approx or .rn is missing");
  bool ftz = type != Type::f16 && type != Type::f16x2 && line.take("ftz");
  line.emit(unary<Op>(line, type, ftz),
            {line.dest(0, type), line.source(1, type)});
}

void decodeFma(Line &line) { floatFma(line, line.type()); }
void decodeCopysign(Line &line) {
  Type type = line.type();
  Handler handler = pick<float, double>(
      line, type, []<class T>() { return lanes<&withSign<T>>; });
  line.emit(handler,
            {line.dest(0, type), line.source(1, type), line.source(2, type)});
}

enum class Test { finite, infinite, number, notANumber, normal, subnormal };
template <class T, Test test> bool hasProperty(T value) {
  switch (test) {
  case Test::finite:
    return std::isfinite(value);
  case Test::infinite:
    return std::isinf(value);
  case Test::number:
    return value == value;
  case Test::notANumber:
    return value != value;
  case Test::normal:
    return std::isnormal(value);
  case Test::subnormal:
    return std::fpclassify(value) == FP_SUBNORMAL;
  }
}
template <class T> Handler propertyTest(int test) {
  constexpr Handler handlers[] = {lanes<&hasProperty<T, Test::finite>>,
                                  lanes<&hasProperty<T, Test::infinite>>,
                                  lanes<&hasProperty<T, Test::number>>,
                                  lanes<&hasProperty<T, Test::notANumber>>,
                                  lanes<&hasProperty<T, Test::normal>>,
                                  lanes<&hasProperty<T, Test::subnormal>>};
  return handlers[test];
}
void decodeTestp(Line &line) {
  static constexpr std::string_view names[] = {
      "finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  int test = line.takeOneOf(names);
  Type type = line.type();
  if (test < 0)
    line.fail("the property to test is missing");
  Handler handler = pick<float, double>(
      line, type, [&]<class T>() { return propertyTest<T>(test); });
  line.emit(handler, {line.dest(0, Type::pred), line.source(1, type)});
}

} // namespace

void floatAdd(Line &line, Type type) { decodeBinary<Add>(line, type); }
void floatSub(Line &line, Type type) { decodeBinary<Sub>(line, type); }
void floatMul(Line &line, Type type) { decodeBinary<Mul>(line, type); }
void floatMin(Line &line, Type type) { decodeExtreme<false>(line, type); }
void floatMax(Line &line, Type type) { decodeExtreme<true>(line, type); }

void floatFma(Line &line, Type type) {
  line.take("rn");
  bool ftz = takeFtz(line, type);
  Handler handler =
      ftz ? MESHWORK_PICK_FLOAT(line, type, return lanes<&fused<true, T>>;)
          : MESHWORK_PICK_FLOAT(line, type, return lanes<&fused<false, T>>;);
  uint32_t to = line.dest(0, type);
  line.emit(handler, {to, line.source(1, type), line.source(2, type),
                      line.source(3, type)});
  saturate(line, type, to);
}

void floatDiv(Line &line, Type type) {
  bool approximate = line.take("approx");
  if (!approximate && !line.take("full") && !line.take("rn"))
    line.fail(".approx, .full or .rn is missing");
  bool ftz = takeFtz(line, type);
  Handler handler = ftz ? lanes<&apply<DivApproximate, true, float, float>>
                        : lanes<&apply<DivApproximate, false, float, float>>;
  if (!approximate || type != Type::f32)
    handler = binary<Div>(line, type, ftz);
  line.emit(handler,
            {line.dest(0, type), line.source(1, type), line.source(2, type)});
}

void floatAbs(Line &line, Type type) {
  uint32_t to = line.dest(0, type);
  line.emit(MESHWORK_PICK_FLOAT(line, type, return lanes<&clearSign<T>>;),
            {to, line.source(1, type)});
  if (type == Type::f32 && line.take("ftz"))
    line.emit(lanes<&flushed>, {to, to});
}
void floatNeg(Line &line, Type type) {
  uint32_t to = line.dest(0, type);
  line.emit(MESHWORK_PICK_FLOAT(line, type, return lanes<&flipSign<T>>;),
            {to, line.source(1, type)});
  if (type == Type::f32 && line.take("ftz"))
    line.emit(lanes<&flushed>, {to, to});
}

std::span<const Opcode> floatOpcodes() {
  static constexpr Opcode list[] = {
      {"fma", decodeFma},          {"rcp", decodeUnary<Rcp>},
      {"sqrt", decodeUnary<Sqrt>}, {"rsqrt", decodeUnary<Rsqrt>},
      {"ex2", decodeUnary<Exp2>},  {"lg2", decodeUnary<Log2>},
      {"sin", decodeUnary<Sin>},   {"cos", decodeUnary<Cos>},
      {"tanh", decodeUnary<Tanh>}, {"copysign", decodeCopysign},
      {"testp", decodeTestp}};
  return list;
}

} // namespace meshwork::ptx
