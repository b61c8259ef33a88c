#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

template <class T, class F>
void checkCompare(const char *name, const char *type, F expected) {
  SCOPED_TRACE(name);
  Snippet<uint32_t, T, T>(absl::StrCat("setp.", name, ".", type,
                                       " %p, %a, %b; selp.b32 %d, 1, 0, %p;"))
      .check([&](T a, T b) { return uint32_t(expected(a, b)); });
}

TEST(Compare, Integers) {
  using S = int32_t;
  using U = uint64_t;
  checkCompare<S>("eq", "s32", [](S a, S b) { return a == b; });
  checkCompare<S>("ne", "b32", [](S a, S b) { return a != b; });
  checkCompare<S>("lt", "s32", [](S a, S b) { return a < b; });
  checkCompare<U>("lt", "u64", [](U a, U b) { return a < b; });
  checkCompare<U>("hs", "u64", [](U a, U b) { return a >= b; });
  checkCompare<uint16_t>("le", "u16", [](auto a, auto b) { return a <= b; });
  checkCompare<int16_t>("gt", "s16", [](auto a, auto b) { return a > b; });
}

TEST(Compare, FloatsOrderedAndNot) {
  using F = float;
  auto nan = [](F a, F b) { return a != a || b != b; };
  checkCompare<F>("eq", "f32", [](F a, F b) { return a == b; });
  checkCompare<F>("ne", "f32", [&](F a, F b) { return a != b && !nan(a, b); });
  checkCompare<F>("lt", "f32", [](F a, F b) { return a < b; });
  checkCompare<F>("ge", "f32", [](F a, F b) { return a >= b; });
  checkCompare<F>("equ", "f32", [&](F a, F b) { return a == b || nan(a, b); });
  checkCompare<F>("neu", "f32", [](F a, F b) { return a != b; });
  checkCompare<F>("ltu", "f32", [&](F a, F b) { return a < b || nan(a, b); });
  checkCompare<F>("gtu", "f32", [&](F a, F b) { return a > b || nan(a, b); });
  checkCompare<F>("num", "f32", [&](F a, F b) { return !nan(a, b); });
  checkCompare<F>("nan", "f32", nan);
  checkCompare<double>("leu", "f64", [](auto a, auto b) { return !(a > b); });
  checkCompare<F>("gt.ftz", "f32", [](F a, F b) {
    auto flush = [](F x) {
      return std::fpclassify(x) == FP_SUBNORMAL ? 0.f * x : x;
    };
    return flush(a) > flush(b);
  });
}

TEST(Compare, NarrowFloats) {
  auto value = [](uint16_t bits) {
    return float(std::bit_cast<_Float16>(bits));
  };
  checkCompare<uint16_t>(
      "lt", "f16", [&](uint16_t a, uint16_t b) { return value(a) < value(b); });
  // Each half its own predicate.
  Snippet<uint32_t, uint32_t, uint32_t>(
      "setp.gt.bf16x2 %p|%q, %a, %b;\n"
      "selp.b32 %r1, 1, 0, %p; selp.b32 %r2, 2, 0, %q; or.b32 %d, %r1, %r2;")
      .check([](uint32_t a, uint32_t b) {
        auto low = [](uint32_t x) { return std::bit_cast<float>(x << 16); };
        auto high = [](uint32_t x) {
          return std::bit_cast<float>(x & 0xffff0000);
        };
        return uint32_t(low(a) > low(b)) | uint32_t(high(a) > high(b)) << 1;
      });
}

TEST(Compare, JoinsWithAPredicate) {
  for (auto [name, op] : {std::pair("and", 0), {"or", 1}, {"xor", 2}})
    Snippet<uint32_t, uint32_t, uint32_t, uint32_t>(
        absl::StrCat("setp.ne.b32 %q, %c, 0;\n"
                     "setp.lt.",
                     name,
                     ".u32 %p|%q, %a, %b, !%q;\n"
                     "selp.b32 %r1, 1, 0, %p; selp.b32 %r2, 2, 0, %q;\n"
                     "or.b32 %d, %r1, %r2;"))
        .check([op = op](uint32_t a, uint32_t b, uint32_t c) {
          bool less = a < b, other = !(c != 0);
          auto join = [&](bool x) {
            return op == 0 ? x && other : op == 1 ? x || other : x != other;
          };
          return uint32_t(join(less)) | uint32_t(join(!less)) << 1;
        });
}

TEST(Compare, SetWritesOnesOrAllBits) {
  Snippet<uint32_t, float, float>("set.lt.u32.f32 %d, %a, %b;")
      .check([](float a, float b) { return a < b ? ~0u : 0u; });
  Snippet<float, int32_t, int32_t>("set.ge.f32.s32 %d, %a, %b;")
      .check([](int32_t a, int32_t b) { return a >= b ? 1.f : 0.f; });
}

TEST(Compare, Select) {
  Snippet<float, float, float, int32_t>("slct.f32.s32 %d, %a, %b, %c;")
      .check([](float a, float b, int32_t c) { return c >= 0 ? a : b; });
  Snippet<uint64_t, uint64_t, uint64_t>(
      "setp.gt.u64 %p, %a, %b; selp.b64 %d, %a, 77, %p;")
      .check([](uint64_t a, uint64_t b) { return a > b ? a : 77; });
}

TEST(Compare, Predicates) {
  Snippet<uint32_t, uint32_t, uint32_t>(
      "setp.ne.b32 %p, %a, 0; setp.ne.b32 %q, %b, 0;\n"
      "xor.pred %p, %p, %q; not.pred %q, %p; and.pred %q, %q, %p;\n"
      "or.pred %p, %p, %q; mov.pred %q, %p; selp.b32 %d, 1, 0, %q;")
      .check([](uint32_t a, uint32_t b) { return (a != 0) != (b != 0); });
}

TEST(Move, PacksAndUnpacks) {
  Snippet<uint32_t, uint16_t, uint16_t>("mov.b32 %d, {%a, %b};")
      .check([](uint16_t a, uint16_t b) { return uint32_t(b) << 16 | a; });
  Snippet<uint16_t, uint32_t>("mov.b32 {_, %d}, %a;").check([](uint32_t a) {
    return a >> 16;
  });
  Snippet<uint64_t, uint64_t>(
      "mov.b64 {%h1, %h2, %h3, %h4}, %a; mov.b64 %d, {%h4, %h3, %h2, %h1};")
      .check([](uint64_t a) {
        return a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 |
               a >> 48;
      });
  Snippet<float, float>("mov.f32 %d, 0f3FC00000; add.f32 %d, %d, %a;")
      .check([](float a) { return 1.5f + a; });
}

TEST(Move, PredicatedOnlyWhereThePredicateHolds) {
  Snippet<uint32_t, uint32_t>("setp.gt.u32 %p, %a, 9;\nmov.b32 %d, %a;\n"
                              "@%p mov.b32 %d, 1;\n@!%p add.u32 %d, %d, 100;")
      .check([](uint32_t a) { return a > 9 ? 1 : a + 100; });
}

} // namespace
} // namespace meshwork::ptx
