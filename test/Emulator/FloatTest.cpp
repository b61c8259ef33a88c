#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x;
}
float half(uint16_t bits) { return float(std::bit_cast<_Float16>(bits)); }
uint16_t toHalf(float x) {
  return x != x ? 0x7fff : std::bit_cast<uint16_t>(_Float16(x));
}
TEST(Float, SumsAndProducts) {
  Snippet<float, float, float>("add.f32 %d, %a, %b;")
      .check([](float a, float b) { return a + b; });
  Snippet<float, float, float>("sub.rn.f32 %d, %a, %b;")
      .check([](float a, float b) { return a - b; });
  Snippet<float, float, float>("mul.rn.f32 %d, %a, %b;")
      .check([](float a, float b) { return a * b; });
  Snippet<double, double, double>("mul.rn.f64 %d, %a, %b;")
      .check([](double a, double b) { return a * b; });
  Snippet<float, float, float>("mul.ftz.f32 %d, %a, %b;")
      .check([](float a, float b) { return flushed(flushed(a) * flushed(b)); });
  Snippet<float, float, float>("add.sat.f32 %d, %a, %b;")
      .check([](float a, float b) {
        float sum = a + b;
        return sum > 0 ? std::min(sum, 1.f) : 0.f;
      });
}

TEST(Float, ProductThenSumIsNotFused) {
  Snippet<float, float, float, float>(
      "mul.f32 %r1, %a, %b; add.f32 %d, %r1, %c;")
      .check([](float a, float b, float c) {
        volatile float product = a * b;
        return product + c;
      });
  Snippet<float, float, float, float>("fma.rn.f32 %d, %a, %b, %c;")
      .check([](float a, float b, float c) { return std::fma(a, b, c); });
  Snippet<double, double, double, double>("fma.rn.f64 %d, %a, %b, %c;")
      .check([](double a, double b, double c) { return std::fma(a, b, c); });
  Snippet<float, float, float, float>("fma.rn.ftz.f32 %d, %a, %b, %c;")
      .check([](float a, float b, float c) {
        return flushed(std::fma(flushed(a), flushed(b), flushed(c)));
      });
}

TEST(Float, PackedPairs) {
  const char *pack = "mov.b64 %rd1, {%a, %a}; mov.b64 %rd2, {%b, %c};\n";
  for (bool high : {false, true}) {
    std::string unpack = absl::StrCat(" mov.b64 {%r1, %r2}, %rd3; mov.b32 %d, ",
                                      high ? "%r2;" : "%r1;");
    using S = Snippet<float, float, float, float>;
    S(absl::StrCat(pack, "add.rn.f32x2 %rd3, %rd1, %rd2;", unpack))
        .check([=](float a, float b, float c) { return a + (high ? c : b); });
    S(absl::StrCat(pack, "fma.rn.f32x2 %rd3, %rd1, %rd2, %rd2;", unpack))
        .check([=](float a, float b, float c) {
          float x = high ? c : b;
          return std::fma(a, x, x);
        });
  }
}

TEST(Float, NarrowFormatsRoundOnce) {
  Snippet<uint16_t, uint16_t, uint16_t>("add.f16 %d, %a, %b;")
      .check([](uint16_t a, uint16_t b) { return toHalf(half(a) + half(b)); });
  Snippet<uint16_t, uint16_t, uint16_t>("mul.rn.bf16 %d, %a, %b;")
      .check([](uint16_t a, uint16_t b) {
        return toBf16(double(wide(a)) * double(wide(b)));
      });
  // In the 128 bits of a quad a product of two bf16 and the sum are exact
  // for exponents this near, so it is rounded once.
  Snippet<uint16_t, uint16_t, uint16_t, uint16_t> fused(
      "fma.rn.bf16 %d, %a, %b, %c;");
  std::mt19937 random(7);
  std::vector<uint16_t> a, b, c;
  auto near = [&] { // 1/4 to 4
    return uint16_t(0x3e80 + random() % 0x200 + (random() & 1 ? 0x8000 : 0));
  };
  for (size_t i = 0; i < fused.count; ++i) {
    a.push_back(near());
    b.push_back(near());
    c.push_back(near());
  }
  std::vector<uint16_t> found = fused.run(a, b, c);
  for (size_t i = 0; i < fused.count; ++i)
    ASSERT_EQ(found[i], toBf16(double(wide(a[i])) * wide(b[i]) + wide(c[i])));
}

TEST(Float, FusedBf16KeepsATinyAddend) {
  // 1.0078125^2 = 1.01568603515625 lies between bf16 values 1.015625 and
  // 1.0234375; 1 + 2^-8 is a tie that only the addend decides.
  Snippet<uint16_t, uint16_t, uint16_t, uint16_t> fused(
      "fma.rn.bf16 %d, %a, %b, %c;");
  size_t n = fused.count;
  uint16_t one = 0x3f80, tie = 0x3b80 /* 2^-8 */;
  std::vector<uint16_t> a(n, one), b(n, tie), c(n, one);
  EXPECT_EQ(fused.run(a, b, c)[0], 0x3f80); // to even
  // (1 + 2^-7) * 2^-8 + 1 is above the tie.
  std::vector<uint16_t> more(n, 0x3f81);
  EXPECT_EQ(fused.run(more, b, c)[0], 0x3f81);
}

TEST(Float, Extremes) {
  auto minimum = [](float a, float b) {
    if (a != a)
      return b;
    if (b != b)
      return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  };
  Snippet<float, float, float>("min.f32 %d, %a, %b;").check(minimum);
  Snippet<float, float, float>("max.f32 %d, %a, %b;")
      .check([=](float a, float b) { return -minimum(-a, -b); });
  Snippet<float, float, float>("min.NaN.f32 %d, %a, %b;")
      .check([=](float a, float b) {
        return a != a || b != b ? NAN : minimum(a, b);
      });
  Snippet<float, float, float, float>("max.f32 %d, %a, %b, %c;")
      .check([=](float a, float b, float c) {
        return -minimum(minimum(-a, -b), -c);
      });
}

TEST(Float, Signs) {
  Snippet<float, float>("abs.f32 %d, %a;").check([](float a) {
    return std::fabs(a);
  });
  Snippet<float, float>("neg.f32 %d, %a;").check([](float a) { return -a; });
  Snippet<float, float, float>("copysign.f32 %d, %a, %b;")
      .check([](float a, float b) { return std::copysign(b, a); });
  Snippet<uint16_t, uint16_t>("neg.bf16 %d, %a;").check([](uint16_t a) {
    return a ^ 0x8000;
  });
}

TEST(Float, RoundedFunctions) {
  Snippet<float, float, float>("div.rn.f32 %d, %a, %b;")
      .check([](float a, float b) { return a / b; });
  Snippet<double, double, double>("div.rn.f64 %d, %a, %b;")
      .check([](double a, double b) { return a / b; });
  Snippet<float, float>("sqrt.rn.f32 %d, %a;").check([](float a) {
    return std::sqrt(a);
  });
  Snippet<float, float>("rcp.rn.f32 %d, %a;").check([](float a) {
    return 1 / a;
  });
}

TEST(Float, ApproximateFunctions) {
  double ulps = 4 * 0x1p-23;
  using S = Snippet<float, float>;
  S("ex2.approx.f32 %d, %a;").check([](float a) { return std::exp2(a); }, ulps);
  S("ex2.approx.ftz.f32 %d, %a;")
      .check([](float a) { return flushed(std::exp2(flushed(a))); }, ulps);
  S("lg2.approx.f32 %d, %a;").check([](float a) { return std::log2(a); }, ulps);
  S("rsqrt.approx.f32 %d, %a;")
      .check([](float a) { return 1 / std::sqrt(a); }, ulps);
  S("sqrt.approx.f32 %d, %a;")
      .check([](float a) { return std::sqrt(a); }, ulps);
  S("rcp.approx.ftz.f32 %d, %a;")
      .check([](float a) { return flushed(1 / flushed(a)); }, ulps);
  S("tanh.approx.f32 %d, %a;")
      .check([](float a) { return std::tanh(a); }, ulps);
  S("sin.approx.f32 %d, %a;").check([](float a) { return std::sin(a); }, ulps);
  S("cos.approx.f32 %d, %a;").check([](float a) { return std::cos(a); }, ulps);
}

TEST(Float, ApproximateQuotientOfALargeDivisorIsZero) {
  Snippet<float, float, float>("div.approx.f32 %d, %a, %b;")
      .check([](float a, float b) {
        if (!(std::fabs(b) > 0x1p126f) || std::isinf(b))
          return a / b;
        return std::isinf(a) ? NAN : std::copysign(0.f, a / b);
      });
}

TEST(Float, Properties) {
  auto test = [](const char *name) {
    return Snippet<uint32_t, float>(
        absl::StrCat("testp.", name, ".f32 %p, %a; selp.b32 %d, 1, 0, %p;"));
  };
  test("finite").check([](float a) { return std::isfinite(a); });
  test("infinite").check([](float a) { return std::isinf(a); });
  test("notanumber").check([](float a) { return a != a; });
  test("subnormal").check([](float a) {
    return std::fpclassify(a) == FP_SUBNORMAL;
  });
}

} // namespace
} // namespace meshwork::ptx
