// Maps alone: rotary embedding, SwiGLU in bf16, AdamW in place, dropout,
// operands in any layout.
#include <bit>

#include <Random123/philox.h>

#include "meshwork/Plan/Ranges.h"
#include "runtime/device/cpu/Philox.h"
#include "test/Codegen/Clusters.h"
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

constexpr const char *rope = R"(
#x = #transformer.dims<batch, sequence, heads, head_dim>
#c = #transformer.dims<sequence, head_dim>
!x = tensor<2x5x3x$Dx$T, #x>
!c = tensor<5x$Dxf32, #c>
func.func @f(%x: !x, %c: !c, %s: !c) -> !x {
  %r = transformer.fused rows <batch, sequence, heads> cols <head_dim> ins(%x, %c, %s : !x, !c, !c) -> !x {
  ^bb0(%a: !x, %cos: !c, %sin: !c):
    %d = transformer.map ins(%a : !x) -> !x {
    ^bb0(%p: f32):
      %two = arith.constant 2.0 : f32
      %0 = arith.mulf %p, %two : f32
      transformer.yield %0 : f32
    }
    %t = transformer.roll %d by $H : !x
    %y = transformer.map ins(%a, %t, %cos, %sin : !x, !x, !c, !c) -> !x {
    ^bb0(%p: f32, %q: f32, %i: f32, %j: f32):
      %0 = arith.mulf %p, %i : f32
      %1 = arith.mulf %q, %j : f32
      %2 = arith.addf %0, %1 : f32
      transformer.yield %2 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

TEST(Rope, RollsWithinEachHead) {
  for (const std::string &arch : runnableArchs())
    for (auto [size, shift] : {std::pair<int64_t, int64_t>{64, 32},
                               {128, 64},
                               {80, 40},
                               {12, 6},
                               {10, 3},
                               {8, 0},
                               {2, 1},
                               {200, 7}}) {
      Kernel kernel(fill(rope, {{"D", std::to_string(size)},
                                {"H", std::to_string(shift)},
                                {"T", "f32"}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      auto x = randomFloats(30 * size), c = randomFloats(5 * size, -1, 1, 2),
           s = randomFloats(5 * size, -1, 1, 3);
      std::vector<float> y(x.size());
      kernel.run({x.data(), c.data(), s.data(), y.data()});
      for (int64_t row = 0; row < 30; ++row)
        for (int64_t d = 0; d < size; ++d) {
          int64_t at = (row / 3 % 5) * size + d;
          double expected = double(x[row * size + d]) * c[at] +
                            2.0 * x[row * size + (d + shift) % size] * s[at];
          expectNear(y[row * size + d], expected, 2e-7, 4, row * size + d);
        }
    }
}

constexpr const char *rollAlone = R"(
#c = #transformer.dims<$Z>
!c = tensor<$Sxf32, #c>
func.func @f(%x: !c) -> !c {
  %r = transformer.fused rows <> cols #c ins(%x : !c) -> !c {
  ^bb0(%a: !c):
    %t = transformer.roll %a by 3 : !c
    transformer.yield %t : !c
  }
  return %r : !c
}
)";

TEST(Rope, RollsWithoutRows) {
  for (auto [names, shape, rows, cols] :
       {std::tuple<const char *, const char *, int64_t, int64_t>{"head_dim",
                                                                 "37", 1, 37},
        {"sequence, head_dim", "301x16", 301, 16},
        {"head_dim", "10000", 1, 10000}}) {
    Kernel kernel(fill(rollAlone, {{"Z", names}, {"S", shape}}), "native");
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    auto x = randomFloats(rows * cols);
    std::vector<float> y(x.size());
    kernel.run({x.data(), y.data()}, 1);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        ASSERT_EQ(y[r * cols + c], x[r * cols + (c + 3) % cols])
            << r << " " << c;
  }
}

/// Whether `actual` is one of the two bf16 numbers around `exact`, or nearest.
void expectRounded(uint16_t actual, double exact, size_t index) {
  expectNear(fromBf16(actual), exact, 1.0 / 256 * (1 + 1e-3), 1e-30, index);
}

TEST(SwiGlu, Bf16OddSizes) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{64, 3072}, {1, 7}, {3, 333}, {1, 4099}}) {
      Kernel kernel(fill(swiglu, {{"R", std::to_string(rows)},
                                  {"C", std::to_string(cols)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      auto g = toBf16(randomFloats(rows * cols, -8, 8)),
           u = toBf16(randomFloats(rows * cols, -2, 2, 2));
      std::vector<uint16_t> y(g.size());
      kernel.run({g.data(), u.data(), y.data()});
      for (size_t i = 0; i < y.size(); ++i) {
        double p = fromBf16(g[i]);
        expectRounded(y[i], p / (1 + std::exp(-p)) * fromBf16(u[i]), i);
      }
      kernel.run({g.data(), u.data(), g.data()}, 1);
      EXPECT_EQ(g, y);
    }
}

constexpr const char *round = R"(
#x = #transformer.dims<n>
func.func @f(%g: tensor<$Nxf32, #x>) -> tensor<$Nxbf16, #x> {
  %r = transformer.fused rows <> cols #x ins(%g : tensor<$Nxf32, #x>) -> tensor<$Nxbf16, #x> {
  ^bb0(%a: tensor<$Nxf32, #x>):
    %y = transformer.map ins(%a : tensor<$Nxf32, #x>) -> tensor<$Nxbf16, #x> {
    ^bb0(%p: f32):
      transformer.yield %p : f32
    }
    transformer.yield %y : tensor<$Nxbf16, #x>
  }
  return %r : tensor<$Nxbf16, #x>
}
)";

TEST(Bf16, RoundsToNearestEven) {
  std::vector<float> x = {1.0f,
                          1.00390625f,
                          1.01171875f,
                          std::bit_cast<float>(0x3f808001u),
                          std::bit_cast<float>(0x3f807fffu),
                          3.4e38f,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          std::bit_cast<float>(0x7f800001u),
                          0.0f,
                          -0.0f,
                          -1.00390625f};
  auto more = randomFloats(987, -1e6, 1e6);
  x.insert(x.end(), more.begin(), more.end());
  for (const std::string &arch : runnableArchs()) {
    Kernel kernel(fill(round, {{"N", std::to_string(x.size())}}), arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    std::vector<uint16_t> y(x.size());
    kernel.run({x.data(), y.data()});
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(y[i], toBf16(x[i])) << x[i] << " on " << arch;
  }
}

// f32 has no 2^24 + 1.
TEST(ExactSum, AddsUpInI32) {
  for (const std::string &arch : runnableArchs())
    for (int64_t cols : {1, 7, 40}) {
      Kernel kernel(fill(exactSum, {{"R", "3"}, {"C", std::to_string(cols)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<int32_t> n(static_cast<size_t>(3 * cols), 1 << 24);
      std::vector<float> x(n.size());
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(i);
      kernel.run({n.data(), x.data(), n.data()});
      for (size_t i = 0; i < n.size(); ++i)
        EXPECT_EQ(n[i], (1 << 24) + static_cast<int32_t>(i)) << arch;
    }
}

TEST(AdamW, UpdatesInPlace) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{131, 100}, {1, 5}, {16, 512}}) {
      Kernel kernel(fill(adamw, {{"R", std::to_string(rows)},
                                 {"C", std::to_string(cols)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      size_t n = rows * cols;
      auto p = randomFloats(n, -1, 1), m = randomFloats(n, -0.1, 0.1, 2),
           v = randomFloats(n, 0, 0.1, 3), g = randomFloats(n, -1, 1, 4);
      auto p0 = p, m0 = m, v0 = v;
      float lr = 1e-3, b1 = 0.271, b2 = 0.142, clip = 0.7;
      std::vector<uint16_t> w(n);
      kernel.run({p.data(), m.data(), v.data(), g.data(), &lr, &b1, &b2, &clip,
                  p.data(), m.data(), v.data(), w.data()},
                 1);
      for (size_t i = 0; i < n; ++i) {
        double gradient = double(g[i]) * clip,
               m2 = 0.9f * double(m0[i]) + 0.1f * gradient,
               v2 = 0.95f * double(v0[i]) + 0.05f * gradient * gradient;
        double expected = p0[i] - lr * (m2 / b1 / (std::sqrt(v2 / b2) + 1e-8) +
                                        0.1f * double(p0[i]));
        expectNear(m[i], m2, 2e-7, 0.1, i);
        expectNear(v[i], v2, 2e-7, 0.1, i);
        expectNear(p[i], expected, 2e-7, 1e-1, i);
        EXPECT_EQ(w[i], toBf16(p[i]));
      }
    }
}

constexpr const char *dropout = R"(
#d = #transformer.dims<$Z>
!x = tensor<$Sxf32, #d>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %first: !i) -> !x {
  %r = transformer.fused rows <$P> cols <$Q> ins(%x, %seed, %step, %first : !x, !i, !i, !i) -> !x {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i):
    %y = transformer.map ins(%a, %b, %c, %d : !x, !i, !i, !i) -> !x {
    ^bb0(%p: f32, %e: i32, %f: i32, %g: i32):
      %m = transformer.dropout_mask %e, %f, %g stream -1234567 rate 1.0e-1
      %0 = arith.mulf %p, %m : f32
      transformer.yield %0 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

TEST(Dropout, DrawsWhatTheRuntimeDraws) {
  struct {
    const char *names, *shape, *rows, *cols;
    int64_t perSample, count;
  } cases[] = {{"batch, sequence, embed", "2x3x50", "batch, sequence", "embed",
                150, 300},
               {"batch, sequence, embed", "2x3x64", "",
                "batch, sequence, embed", 192, 384},
               {"sequence, batch", "7x4", "sequence", "batch", 1, 28},
               {"batch, embed", "1x33", "batch", "embed", 33, 33},
               {"embed", "2001", "", "embed", 0, 2001}};
  for (const std::string &arch : runnableArchs())
    for (auto &c : cases) {
      Kernel kernel(
          fill(dropout,
               {{"Z", c.names}, {"S", c.shape}, {"P", c.rows}, {"Q", c.cols}}),
          arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<float> x(c.count, 1), y(c.count);
      int32_t seed = -5, step = 17,
              first = 400000000; // positions beyond 32 bits
      kernel.run({x.data(), &seed, &step, &first, y.data()}, 1);
      meshwork::runtime::cpu::PhiloxStream stream{
          static_cast<uint32_t>(seed), static_cast<uint32_t>(-1234567), 17};
      size_t dropped = 0;
      for (int64_t i = 0; i < c.count; ++i) {
        uint32_t word = meshwork::runtime::cpu::philoxWord(
            stream, uint64_t(first) * c.perSample + i);
        bool isKept = word >= static_cast<uint32_t>(0.1 * 4294967296.0);
        EXPECT_EQ(y[i], isKept ? static_cast<float>(1 / 0.9) : 0.0f)
            << c.names << " " << i;
        dropped += !isKept;
      }
      if (c.count > 1000)
        EXPECT_NEAR(double(dropped) / c.count, 0.1, 0.03);
    }
}

/// Sums of rows: of what dropout makes in the same kernel, or of what it has
/// made.
constexpr const char *dropoutAndSums = R"(
#d = #transformer.dims<sequence, embed>
!x = tensor<5x$Cxf32, #d>
!r = tensor<5xf32, #transformer.dims<sequence>>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %first: !i) -> !r {
  %o = transformer.fused rows <sequence> cols <embed> ins(%x, %seed, %step, %first : !x, !i, !i, !i) -> !r {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i):
    %y = transformer.map ins(%a, %b, %c, %d : !x, !i, !i, !i) -> !x {
    ^bb0(%p: f32, %e: i32, %f: i32, %g: i32):
      %m = transformer.dropout_mask %e, %f, %g stream -1234567 rate 1.0e-1
      %0 = arith.mulf %p, %m : f32
      transformer.yield %0 : f32
    }
    %z = transformer.reduce add %y over <embed> : !x -> !r
    transformer.yield %z : !r
  }
  return %o : !r
}
)";
constexpr const char *sums = R"(
#d = #transformer.dims<sequence, embed>
!x = tensor<5x$Cxf32, #d>
!r = tensor<5xf32, #transformer.dims<sequence>>
func.func @f(%x: !x) -> !r {
  %o = transformer.fused rows <sequence> cols <embed> ins(%x : !x) -> !r {
  ^bb0(%a: !x):
    %z = transformer.reduce add %a over <embed> : !x -> !r
    transformer.yield %z : !r
  }
  return %o : !r
}
)";

// A pipeline's stage may begin between the two: sums have the same bits then.
TEST(Dropout, DoesNotChangeTheOrderOfSums) {
  for (const std::string &arch : runnableArchs())
    for (int64_t cols : {48, 80, 96, 200, 768}) {
      std::vector<float> x = randomFloats(5 * cols), y(5 * cols), apart(5),
                         together(5);
      int32_t seed = 3, step = 4, first = 5;
      auto run = [&](const char *text, std::vector<void *> operands) {
        std::string size = std::to_string(cols);
        Kernel kernel(fill(text, {{"Z", "sequence, embed"},
                                  {"S", "5x" + size},
                                  {"P", "sequence"},
                                  {"Q", "embed"},
                                  {"C", size}}),
                      arch);
        ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
        kernel.run(std::move(operands), 1);
      };
      run(dropout, {x.data(), &seed, &step, &first, y.data()});
      run(sums, {y.data(), apart.data()});
      run(dropoutAndSums, {x.data(), &seed, &step, &first, together.data()});
      EXPECT_EQ(together, apart) << arch << " " << cols;
    }
}

/// Which positions of 23 the first of two ranks, or the second, has in zigzag:
/// 6 and 6 of which the last may not be there.
std::vector<int32_t> positionsInZigzag(int64_t rank) {
  using namespace meshwork;
  layout::Cut cut{2, rank, layout::DimLayout::zigzag};
  std::vector<int32_t> positions(layout::storedSize(23, {&cut, 1}), -1);
  for (const layout::Range &range : layout::ranges(23, {&cut, 1}))
    for (int64_t i = 0; i < range.count; ++i)
      positions[range.offset + i] = static_cast<int32_t>(range.begin + i);
  return positions;
}

/// Two ranges lie within one vector, and so do a range and padding.
TEST(Dropout, DrawsAtAnyPositionsOfAPart) {
  struct {
    const char *names, *shape, *rows, *cols, *space;
    int64_t inner; // elements of a token
  } cases[] = {{"batch, sequence", "2x12", "batch", "sequence", "2, 23", 1},
               {"batch, sequence", "2x12", "", "batch, sequence", "2, 23", 1},
               {"batch, sequence, embed", "2x12x3", "batch", "sequence, embed",
                "2, 23, 3", 3},
               {"batch, sequence, embed", "2x12x20", "batch, sequence", "embed",
                "2, 23, 20", 20}};
  for (const std::string &arch : runnableArchs())
    for (auto &c : cases)
      for (int64_t rank : {0, 1}) {
        Kernel kernel(fill(partOfSequence, {{"Z", c.names},
                                            {"S", c.shape},
                                            {"P", c.rows},
                                            {"Q", c.cols},
                                            {"W", c.space}}),
                      arch);
        ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
        std::vector<int32_t> at = positionsInZigzag(rank);
        ASSERT_EQ(at.size(), 12u);
        std::vector<float> x(24 * c.inner, 1), y(x.size(), -1);
        int32_t seed = 3, step = 17, first = 400000000;
        kernel.run({x.data(), &seed, &step, &first, at.data(), y.data()});
        meshwork::runtime::cpu::PhiloxStream stream{
            3, static_cast<uint32_t>(-1234567), 17};
        for (int64_t i = 0; i < int64_t(y.size()); ++i) {
          int64_t sample = i / c.inner / 12, position = at[i / c.inner % 12];
          uint64_t index =
              ((uint64_t(first) + sample) * 23 + position) * c.inner +
              i % c.inner;
          bool isKept = position >= 0 &&
                        meshwork::runtime::cpu::philoxWord(stream, index) >=
                            uint32_t{1} << 30;
          EXPECT_EQ(y[i], isKept ? static_cast<float>(1 / 0.75) : 0.0f)
              << c.names << " " << c.rows << " " << i;
        }
      }
}

constexpr const char *rounding = R"(
#d = #transformer.dims<ffn, embed>
!x = tensor<$Sxf32, #d>
!y = tensor<$Sxbf16, #d>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %at: !i) -> (!x, !y) {
  %r:2 = transformer.fused rows <$P> cols <$Q> ins(%x, %seed, %step, %at : !x, !i, !i, !i) -> !x, !y {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i):
    %y:2 = transformer.map ins(%a, %b, %c, %d : !x, !i, !i, !i) -> !x, !y {
    ^bb0(%p: f32, %e: i32, %f: i32, %g: i32):
      %0 = transformer.stochastic_round %p by %e, %f, %e stream -1234567 $W
      transformer.yield %0, %0 : f32, f32
    }
    transformer.yield %y#0, %y#1 : !x, !y
  }
  return %r#0, %r#1 : !x, !y
}
)";

/// The rule, on bits.
float roundedByWord(float value, uint32_t word) {
  uint32_t bits = std::bit_cast<uint32_t>(value),
           raised = (bits + (word & 0xffff)) & 0xffff0000;
  if (std::isnan(value) || std::isinf(value))
    return value;
  return std::isinf(std::bit_cast<float>(raised))
             ? std::bit_cast<float>(bits & 0xffff0000)
             : std::bit_cast<float>(raised);
}

TEST(StochasticRound, RoundsByWhatTheRuntimeDraws) {
  struct {
    const char *shape, *rows, *cols, *where;
    int64_t columns, count, offset; // elements before the part's first
  } cases[] = {
      {"3x50", "ffn", "embed", "", 50, 150, 0},
      {"3x64", "", "ffn, embed", "", 64, 192, 0},
      {"1x33", "ffn", "embed", "", 33, 33, 0},
      {"5x48", "ffn", "embed", "of [400000000, 48] at [\"ffn\"] %g", 48, 240,
       300000000L * 48}, // beyond 32 bits
      {"2x31", "ffn", "embed", "of [2, 400] at [\"embed\"] %g", 400, 62, 300}};
  for (const std::string &arch : runnableArchs())
    for (auto &c : cases) {
      Kernel kernel(
          fill(rounding,
               {{"S", c.shape}, {"P", c.rows}, {"Q", c.cols}, {"W", c.where}}),
          arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<float> x = randomFloats(c.count), y(c.count);
      std::vector<uint16_t> stored(c.count);
      float special[] = {0.0f,
                         -0.0f,
                         1.0f,
                         INFINITY,
                         -INFINITY,
                         0x1.fffffep127f,
                         -0x1.fffffep127f,
                         0x1p-149f,
                         0x1.8p-130f,
                         NAN,
                         std::bit_cast<float>(0x7fffffffu),
                         std::bit_cast<float>(0x7f800001u)};
      std::copy(std::begin(special), std::end(special), x.begin() + 7);
      int32_t seed = -5, step = 17, at = c.offset == 300 ? 300 : 300000000;
      kernel.run({x.data(), &seed, &step, &at, y.data(), stored.data()}, 1);
      meshwork::runtime::cpu::PhiloxStream stream{
          static_cast<uint32_t>(seed), static_cast<uint32_t>(-1234567), 17};
      int64_t width = c.count == 62 ? 31 : c.columns, ups = 0;
      for (int64_t i = 0; i < c.count; ++i) {
        int64_t position = c.offset + i / width * c.columns + i % width;
        float expected =
            roundedByWord(x[i], meshwork::runtime::cpu::philoxWord(
                                    stream, static_cast<uint64_t>(position)));
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(y[i]) && std::isnan(fromBf16(stored[i]))) << i;
          continue;
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(y[i]),
                  std::bit_cast<uint32_t>(expected))
            << c.shape << " " << i;
        // The instruction that stores bf16 takes what is below the normal
        // numbers for zero.
        bool isTiny = std::abs(expected) < 0x1p-126f;
        EXPECT_TRUE(stored[i] == std::bit_cast<uint32_t>(expected) >> 16 ||
                    (isTiny && (stored[i] & 0x7fff) == 0))
            << c.shape << " " << i;
        ups += std::abs(expected) > std::abs(x[i]);
      }
      EXPECT_GT(ups, c.count / 4);
      EXPECT_LT(ups, c.count * 3 / 4);
    }
}

constexpr const char *gated = R"(
#x = #transformer.dims<rows, heads, cols>
!x = tensor<6x4x$Cx$T, #x>
!b = tensor<4xf32, #transformer.dims<heads>>
!t = tensor<$Cx6xf32, #transformer.dims<cols, rows>>
func.func @f(%x: !x, %b: !b, %t: !t) -> !x {
  %r = transformer.fused rows <$P> cols <$Q> ins(%x, %b, %t : !x, !b, !t) -> !x {
  ^bb0(%a: !x, %g: !b, %h: !t):
    %y = transformer.map ins(%a, %g, %h : !x, !b, !t) -> !x {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %i = transformer.index "cols" : i32
      %n = transformer.index "rows" : i32
      %sum = arith.addi %i, %n : i32
      %f = arith.sitofp %sum : i32 to f32
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %0, %f : f32
      %2 = arith.addf %1, %s : f32
      transformer.yield %2 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

// Rows and cols cut anywhere, operands transposed or with gaps.
TEST(Layouts, AnyStridesAndAnyCut) {
  for (const std::string &arch : runnableArchs())
    for (const char *type : {"f32", "bf16"})
      for (auto [rows, cols] :
           {std::pair<const char *, const char *>{"rows", "heads, cols"},
            {"rows, heads", "cols"},
            {"", "rows, heads, cols"},
            {"rows, heads, cols", ""}})
        for (int64_t size : {16, 37, 70}) {
          // x lies as [cols, heads, rows]; the result has gaps between rows.
          std::vector<int64_t> xStrides = {1, 6, 24},
                               yStrides = {5 * size, size, 1};
          Kernel kernel(fill(gated, {{"C", std::to_string(size)},
                                     {"T", type},
                                     {"P", rows},
                                     {"Q", cols}}),
                        arch, {xStrides, {}, {}, yStrides});
          ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
          bool isBf16 = std::string(type) == "bf16";
          auto x = randomFloats(24 * size), b = randomFloats(4, -1, 1, 2),
               t = randomFloats(6 * size, -1, 1, 3);
          auto xs = toBf16(x);
          std::vector<float> y(30 * size, 77);
          std::vector<uint16_t> ys(30 * size, 77);
          kernel.run({isBf16 ? static_cast<void *>(xs.data()) : x.data(),
                      b.data(), t.data(),
                      isBf16 ? static_cast<void *>(ys.data()) : y.data()},
                     1);
          for (int64_t r = 0; r < 6; ++r)
            for (int64_t h = 0; h < 5; ++h)
              for (int64_t c = 0; c < size; ++c) {
                size_t at = r * 5 * size + h * size + c;
                if (h == 4) { // the gap stays as it was
                  ASSERT_TRUE(isBf16 ? ys[at] == 77 : y[at] == 77);
                  continue;
                }
                size_t from = r + h * 6 + c * 24;
                double expected =
                    double(isBf16 ? fromBf16(xs[from]) : x[from]) * b[h] +
                    (r + c) + t[c * 6 + r];
                expectNear(isBf16 ? fromBf16(ys[at]) : y[at], expected,
                           isBf16 ? 1.01 / 256 : 3e-7, 1, at);
              }
        }
}

} // namespace
