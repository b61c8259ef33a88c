#include "test/Emulator/Snippet.h"

#include <cfenv>

namespace meshwork::ptx {
namespace {
using u8 = uint8_t;
using s8 = int8_t;
using u16 = uint16_t;
using s16 = int16_t;
using u32 = uint32_t;
using s32 = int32_t;
using u64 = uint64_t;
using s64 = int64_t;

template <class To> To saturated(double x) {
  if (x != x)
    return 0;
  using L = std::numeric_limits<To>;
  return x <= double(L::min())   ? L::min()
         : x >= double(L::max()) ? L::max()
                                 : To(x);
}
/// f under another rounding of this machine's floats.
template <class F> auto rounded(int mode, F f) {
  std::fesetround(mode);
  auto result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST(Convert, BetweenIntegers) {
  Snippet<u32, u16>("cvt.u32.u16 %d, %a;").check([](u16 a) { return a; });
  Snippet<s32, s16>("cvt.s32.s16 %d, %a;").check([](s16 a) { return a; });
  Snippet<u16, u32>("cvt.u16.u32 %d, %a;").check([](u32 a) { return a; });
  Snippet<s64, s32>("cvt.s64.s32 %d, %a;").check([](s32 a) { return a; });
  Snippet<u32, u64>("cvt.u32.u64 %d, %a;").check([](u64 a) { return a; });
  // Narrower than the register: taken from, extended into it.
  Snippet<s32, s32>("cvt.s32.s8 %d, %a;").check([](s32 a) { return s8(a); });
  Snippet<u16, u32>("cvt.u8.u32 %d, %a;").check([](u32 a) { return u8(a); });
  Snippet<s16, s32>("cvt.s8.s32 %d, %a;").check([](s32 a) { return s8(a); });
  Snippet<s16, s32>("cvt.sat.s8.s32 %d, %a;").check([](s32 a) {
    return std::clamp(a, -128, 127);
  });
  Snippet<u32, s32>("cvt.sat.u32.s32 %d, %a;").check([](s32 a) {
    return std::max(a, 0);
  });
}

TEST(Convert, ToIntegers) {
  Snippet<s32, float>("cvt.rzi.s32.f32 %d, %a;").check([](float a) {
    return saturated<s32>(std::trunc(double(a)));
  });
  Snippet<u32, float>("cvt.rni.u32.f32 %d, %a;").check([](float a) {
    return saturated<u32>(std::nearbyint(double(a)));
  });
  Snippet<s64, double>("cvt.rmi.s64.f64 %d, %a;").check([](double a) {
    return saturated<s64>(std::floor(a));
  });
  Snippet<u64, float>("cvt.rpi.u64.f32 %d, %a;").check([](float a) {
    return saturated<u64>(std::ceil(double(a)));
  });
  Snippet<u16, float>("cvt.rzi.u16.f32 %d, %a;").check([](float a) {
    return saturated<u16>(std::trunc(double(a)));
  });
}

TEST(Convert, FromIntegers) {
  Snippet<float, s32>("cvt.rn.f32.s32 %d, %a;").check([](s32 a) {
    return float(a);
  });
  Snippet<float, u64>("cvt.rn.f32.u64 %d, %a;").check([](u64 a) {
    return float(a);
  });
  Snippet<float, u64>("cvt.rz.f32.u64 %d, %a;").check([](u64 a) {
    return rounded(FE_TOWARDZERO, [&] {
      volatile u64 x = a;
      return float(x);
    });
  });
  Snippet<double, s64>("cvt.rp.f64.s64 %d, %a;").check([](s64 a) {
    return rounded(FE_UPWARD, [&] {
      volatile s64 x = a;
      return double(x);
    });
  });
  Snippet<float, u16>("cvt.rn.f32.u8 %d, %a;").check([](u16 a) {
    return float(u8(a));
  });
}

TEST(Convert, BetweenFloats) {
  Snippet<double, float>("cvt.f64.f32 %d, %a;").check([](float a) {
    return double(a);
  });
  for (auto [name, mode] : {std::pair("rn", FE_TONEAREST),
                            {"rz", FE_TOWARDZERO},
                            {"rm", FE_DOWNWARD},
                            {"rp", FE_UPWARD}})
    Snippet<float, double>(absl::StrCat("cvt.", name, ".f32.f64 %d, %a;"))
        .check([mode = mode](double a) {
          return rounded(mode, [&] {
            volatile double x = a;
            volatile float result = float(x);
            return float(result);
          });
        });
  Snippet<float, float>("cvt.rni.f32.f32 %d, %a;").check([](float a) {
    return std::nearbyint(a);
  });
  Snippet<float, float>("cvt.sat.f32.f32 %d, %a;").check([](float a) {
    return a > 0 ? std::min(a, 1.f) : 0.f;
  });
  Snippet<float, float>("cvt.ftz.f32.f32 %d, %a;").check([](float a) {
    return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.f, a) : a;
  });
}

u16 halfOf(float a) {
  return a != a ? 0x7fff : std::bit_cast<u16>(_Float16(a));
}
TEST(Convert, NarrowFloats) {
  Snippet<u16, float>("cvt.rn.f16.f32 %d, %a;").check(halfOf);
  Snippet<u16, float>("cvt.rn.bf16.f32 %d, %a;").check(toBf16);
  Snippet<float, u16>("cvt.f32.f16 %d, %a;").check([](u16 a) {
    return float(std::bit_cast<_Float16>(a));
  });
  Snippet<float, u16>("cvt.f32.bf16 %d, %a;").check([](u16 a) {
    return std::bit_cast<float>(u32(a) << 16);
  });
  Snippet<u16, float>("cvt.rz.bf16.f32 %d, %a;").check([](float a) {
    return a != a ? 0x7fff : std::bit_cast<u32>(a) >> 16;
  });
  Snippet<u16, u16>("cvt.rn.bf16.f16 %d, %a;").check([](u16 a) {
    return toBf16(float(std::bit_cast<_Float16>(a)));
  });
  Snippet<u16, s32>("cvt.rn.f16.s32 %d, %a;").check([](s32 a) {
    return std::bit_cast<u16>(_Float16(double(a)));
  });
}

TEST(Convert, PairsHaveTheFirstSourceOnTop) {
  Snippet<u32, float, float>("cvt.rn.bf16x2.f32 %d, %a, %b;")
      .check([](float a, float b) { return u32(toBf16(a)) << 16 | toBf16(b); });
  Snippet<u32, float, float>("cvt.rn.f16x2.f32 %d, %a, %b;")
      .check([](float a, float b) { return u32(halfOf(a)) << 16 | halfOf(b); });
  Snippet<u32, float, float>("cvt.rn.relu.bf16x2.f32 %d, %a, %b;")
      .check([](float a, float b) {
        auto relu = [](float x) { return x < 0 ? 0.f : x; };
        return u32(toBf16(relu(a))) << 16 | toBf16(relu(b));
      });
}

/// The nearest of all numbers of 8 bits, of two the even one.
u16 nearest8(float x, int mantissaBits, int bias, double largest) {
  if (x != x)
    return 0x7f;
  auto valueOf = [&](int bits) {
    int exponent = bits >> mantissaBits;
    double fraction =
        std::ldexp(double(bits & ((1 << mantissaBits) - 1)), -mantissaBits);
    return exponent ? std::ldexp(1 + fraction, exponent - bias)
                    : std::ldexp(fraction, 1 - bias);
  };
  int best = 0;
  double magnitude = std::min(double(std::fabs(x)), largest);
  for (int bits = 0; bits < 0x7f && valueOf(bits) <= largest; ++bits) {
    double distance = std::fabs(valueOf(bits) - magnitude),
           least = std::fabs(valueOf(best) - magnitude);
    if (distance < least || (distance == least && bits % 2 == 0))
      best = bits;
  }
  return u16(best | (std::signbit(x) ? 0x80 : 0));
}

TEST(Convert, PairsOf8Bits) {
  Snippet<u16, float, float>("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;")
      .check([](float a, float b) {
        return u16(nearest8(a, 3, 7, 448) << 8 | nearest8(b, 3, 7, 448));
      });
  Snippet<u16, float, float>("cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;")
      .check([](float a, float b) {
        return u16(nearest8(a, 2, 15, 57344) << 8 | nearest8(b, 2, 15, 57344));
      });
}

TEST(Convert, Tf32RoundsTo10Bits) {
  Snippet<u32, float>("cvt.rna.tf32.f32 %d, %a;").check([](float a) {
    u32 bits = std::bit_cast<u32>(a);
    bool finite = std::isfinite(a);
    return a != a ? 0x7fffffff : finite ? (bits + 0x1000) & ~0x1fffu : bits;
  });
}

TEST(Convert, AMissingRoundingIsAnError) {
  EXPECT_TRUE(failsWith(
      Kernels::fromText(kernelText<float, s32>("cvt.f32.s32 %d, %a;")).status(),
      "a rounding is missing"));
  EXPECT_TRUE(failsWith(
      Kernels::fromText(kernelText<s32, float>("cvt.s32.f32 %d, %a;")).status(),
      "a rounding is missing"));
}

} // namespace
} // namespace meshwork::ptx
