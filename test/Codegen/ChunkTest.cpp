// Sums over rows: chunk results, and the clusters without rows that finish
// them.
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

// y = x + bias, and the column sums of y^2 and its total, in chunks of rows.
constexpr const char *biasAndSums = R"(
#abd = #transformer.dims<batch, sequence, embed>
#d = #transformer.dims<embed>
#ab = #transformer.dims<batch, sequence>
!x = tensor<$Bx$Sx$Dx$T, #abd>
!f = tensor<$Bx$Sx$Dxf32, #abd>
!w = tensor<$Dxf32, #d>
!p = tensor<$Kx$Dxf32, #transformer.dims<chunk, embed>>
!t = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x, %w: !w) -> (!x, !p, !t) {
  %r:3 = transformer.fused rows #ab cols #d ins(%x, %w : !x, !w) -> !x, !p, !t {
  ^bb0(%a: !x, %b: !w):
    %y = transformer.map ins(%a, %b : !x, !w) -> !x {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    %sq = transformer.map ins(%a, %b : !x, !w) -> !f {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      %1 = arith.mulf %0, %0 : f32
      transformer.yield %1 : f32
    }
    %cs = transformer.reduce add %sq over #ab : !f -> !w
    %ts = transformer.reduce add %sq over #abd : !f -> tensor<f32>
    transformer.yield %y, %cs, %ts : !x, !w, tensor<f32>
  }
  return %r#0, %r#1, %r#2 : !x, !p, !t
}
)";

struct Shape {
  int64_t batch, sequence, embed, chunks;
};

class ChunkShapes : public testing::TestWithParam<Shape> {};

TEST_P(ChunkShapes, SumsOfRowsAgreeWithDoubles) {
  auto [batch, sequence, embed, chunks] = GetParam();
  int64_t rows = batch * sequence;
  for (const std::string &arch : runnableArchs()) {
    Kernel kernel(fill(biasAndSums, {{"B", std::to_string(batch)},
                                     {"S", std::to_string(sequence)},
                                     {"D", std::to_string(embed)},
                                     {"K", std::to_string(chunks)},
                                     {"T", "f32"}}),
                  arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    ASSERT_EQ(kernel.items(), chunks);
    auto x = randomFloats(rows * embed), w = randomFloats(embed, -1, 1, 2);
    // Chunk results start as rubbish: the kernel must clear them.
    std::vector<float> y(x.size()), part(chunks * embed, NAN),
        total(chunks, NAN), part2(part), total2(total);
    kernel.run({x.data(), w.data(), y.data(), part.data(), total.data()});
    for (int64_t c = 0; c < chunks; ++c) {
      double all = 0;
      std::vector<double> columns(embed);
      for (int64_t r = c * rows / chunks; r < (c + 1) * rows / chunks; ++r)
        for (int64_t d = 0; d < embed; ++d) {
          double value = x[r * embed + d] + w[d];
          ASSERT_EQ(y[r * embed + d], x[r * embed + d] + w[d]);
          columns[d] += value * value;
          all += value * value;
        }
      for (int64_t d = 0; d < embed; ++d)
        expectNear(part[c * embed + d], columns[d], 1e-5, 1e-3, c * embed + d);
      expectNear(total[c], all, 1e-5, 1e-3, c);
    }
    kernel.run({x.data(), w.data(), x.data(), part2.data(), total2.data()}, 1);
    EXPECT_EQ(x, y);
    EXPECT_EQ(part, part2);
    EXPECT_EQ(total, total2);
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, ChunkShapes,
                         testing::Values(Shape{2, 19, 100, 8},
                                         Shape{1, 5, 768, 8},
                                         Shape{4, 32, 64, 16},
                                         Shape{3, 7, 1, 4}, Shape{2, 2, 12, 1},
                                         Shape{1, 1, 300, 2}));

// The largest y of each column and of all.
constexpr const char *maxima = R"(
#rc = #transformer.dims<sequence, embed>
#d = #transformer.dims<embed>
#r = #transformer.dims<sequence>
!x = tensor<$Rx$Dxbf16, #rc>
!w = tensor<$Dxf32, #d>
!p = tensor<$Kx$Dxf32, #transformer.dims<chunk, embed>>
!t = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x) -> (!p, !t) {
  %r:2 = transformer.fused rows #r cols #d ins(%x : !x) -> !p, !t {
  ^bb0(%a: !x):
    %cs = transformer.reduce max %a over #r : !x -> !w
    %ts = transformer.reduce max %a over #rc : !x -> tensor<f32>
    transformer.yield %cs, %ts : !w, tensor<f32>
  }
  return %r#0, %r#1 : !p, !t
}
)";

TEST(ChunkTest, TakesMaximaOfRows) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols, chunks] :
         {std::tuple<int64_t, int64_t, int64_t>{38, 100, 8},
          {5, 768, 5},
          {7, 1, 3},
          {2, 300, 4}}) {
      Kernel kernel(fill(maxima, {{"R", std::to_string(rows)},
                                  {"D", std::to_string(cols)},
                                  {"K", std::to_string(chunks)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      // All below zero, so that a cleared place would show.
      auto x = toBf16(randomFloats(rows * cols, -9, -1));
      std::vector<float> part(chunks * cols, NAN), total(chunks, NAN);
      kernel.run({x.data(), part.data(), total.data()});
      for (int64_t c = 0; c < chunks; ++c) {
        float all = -HUGE_VALF;
        for (int64_t d = 0; d < cols; ++d) {
          float most = -HUGE_VALF;
          for (int64_t r = c * rows / chunks; r < (c + 1) * rows / chunks; ++r)
            most = std::max(most, fromBf16(x[r * cols + d]));
          ASSERT_EQ(part[c * cols + d], most) << c << " " << d;
          all = std::max(all, most);
        }
        ASSERT_EQ(total[c], all);
      }
    }
}

// Rows alone: the sum of squares of a vector.
constexpr const char *vectorSum = R"(
#d = #transformer.dims<embed>
!x = tensor<$Nxbf16, #d>
!f = tensor<$Nxf32, #d>
!t = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x) -> !t {
  %r = transformer.fused rows #d cols <> ins(%x : !x) -> !t {
  ^bb0(%a: !x):
    %sq = transformer.map ins(%a : !x) -> !f {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %s = transformer.reduce add %sq over #d : !f -> tensor<f32>
    transformer.yield %s : tensor<f32>
  }
  return %r : !t
}
)";

TEST(ChunkTest, SumsRowsWithoutColumns) {
  for (auto [size, chunks] :
       {std::pair<int64_t, int64_t>{768, 32}, {7, 3}, {3, 8}}) {
    Kernel kernel(fill(vectorSum, {{"N", std::to_string(size)},
                                   {"K", std::to_string(chunks)}}),
                  "native");
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    auto x = toBf16(randomFloats(size));
    std::vector<float> sums(chunks, NAN);
    kernel.run({x.data(), sums.data()}, 1);
    for (int64_t c = 0; c < chunks; ++c) {
      double exact = 0;
      for (int64_t i = c * size / chunks; i < (c + 1) * size / chunks; ++i)
        exact += std::pow(double(fromBf16(x[i])), 2);
      expectNear(sums[c], exact, 1e-6, 1e-6, c);
    }
  }
}

// The second half: sums over chunks, per column, with what uses them.
constexpr const char *finish = R"(
#d = #transformer.dims<embed>
#kd = #transformer.dims<chunk, embed>
!p = tensor<$Kx$Dxf32, #kd>
!t = tensor<$Kxf32, #transformer.dims<chunk>>
!w = tensor<$Dxf32, #d>
!g = tensor<$Dxbf16, #d>
func.func @f(%p: !p, %t: !t, %w: !w) -> (!w, !g) {
  %r:2 = transformer.fused rows <> cols #d ins(%p, %t, %w : !p, !t, !w) -> !w, !g {
  ^bb0(%a: !p, %b: !t, %c: !w):
    %s = transformer.reduce add %a over <chunk> : !p -> !w
    %m = transformer.reduce max %a over <chunk> : !p -> !w
    %q = transformer.reduce add %b over <chunk> : !t -> tensor<f32>
    %y:2 = transformer.map ins(%s, %m, %q, %c : !w, !w, tensor<f32>, !w) -> !w, !g {
    ^bb0(%i: f32, %j: f32, %k: f32, %l: f32):
      %0 = math.sqrt %k : f32
      %1 = arith.mulf %i, %0 : f32
      %2 = arith.addf %1, %l : f32
      transformer.yield %2, %j : f32, f32
    }
    transformer.yield %y#0, %y#1 : !w, !g
  }
  return %r#0, %r#1 : !w, !g
}
)";

TEST(VerticalTest, AddsChunksPerColumn) {
  for (const std::string &arch : runnableArchs())
    for (auto [chunks, embed] : {std::pair<int64_t, int64_t>{8, 768},
                                 {32, 100},
                                 {1, 64},
                                 {5, 1},
                                 {3, 9000},
                                 {2, 8192}}) {
      Kernel kernel(fill(finish, {{"K", std::to_string(chunks)},
                                  {"D", std::to_string(embed)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      EXPECT_EQ(kernel.items(), (embed + 4095) / 4096);
      auto p = randomFloats(chunks * embed), t = randomFloats(chunks, 0, 1),
           w = randomFloats(embed);
      std::vector<float> y(embed);
      std::vector<uint16_t> g(embed);
      kernel.run({p.data(), t.data(), w.data(), y.data(), g.data()});
      double total = 0;
      for (float value : t)
        total += value;
      for (int64_t d = 0; d < embed; ++d) {
        double sum = 0;
        float largest = -INFINITY;
        for (int64_t c = 0; c < chunks; ++c) {
          sum += p[c * embed + d];
          largest = std::max(largest, p[c * embed + d]);
        }
        expectNear(y[d], sum * std::sqrt(total) + w[d], 1e-5, 1, d);
        ASSERT_EQ(g[d], toBf16(largest)) << d;
      }
      auto w2 = w;
      kernel.run({p.data(), t.data(), w2.data(), w2.data(), g.data()}, 1);
      EXPECT_EQ(w2, y);
    }
}

// Scalars only, and many of them: the norm of all gradients.
TEST(ScalarTest, AddsManyChunkedScalars) {
  constexpr int count = 150;
  std::string types, arguments, body, last;
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i), comma = i ? ", " : "";
    types += comma + "!t";
    arguments += comma + "%a" + n + ": !t";
    body += "%s" + n + " = transformer.reduce add %b" + n +
            " over <chunk> : !t -> tensor<f32>\n";
  }
  std::string outer, inner, sums, sumTypes, scalars, adds;
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i), comma = i ? ", " : "";
    outer += comma + "%a" + n;
    inner += comma + "%b" + n + ": !t";
    sums += comma + "%s" + n;
    sumTypes += comma + "tensor<f32>";
    scalars += comma + "%c" + n + ": f32";
    adds += i ? "%d" + n + " = arith.addf " +
                    (i == 1 ? "%c0" : "%d" + std::to_string(i - 1)) + ", %c" +
                    n + " : f32\n"
              : "";
  }
  std::string text =
      "!t = tensor<4xf32, #transformer.dims<chunk>>\nfunc.func @f(" +
      arguments +
      ") -> tensor<f32> {\n %r = transformer.fused rows <> cols <> ins(" +
      outer + " : " + types + ") -> tensor<f32> {\n^bb0(" + inner + "):\n" +
      body + "%n = transformer.map ins(" + sums + " : " + sumTypes +
      ") -> tensor<f32> {\n^bb0(" + scalars + "):\n" + adds +
      "%root = math.sqrt %d149 : f32\n transformer.yield %root : f32\n}\n "
      "transformer.yield %n : tensor<f32>\n}\n return %r : tensor<f32>\n}";
  Kernel kernel(text, "native");
  ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
  EXPECT_EQ(kernel.items(), 1);
  std::vector<std::vector<float>> values;
  std::vector<void *> args;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    values.push_back(randomFloats(4, 0, 1, i));
    for (float value : values.back())
      sum += value;
  }
  for (auto &value : values)
    args.push_back(value.data());
  float result = 0;
  args.push_back(&result);
  kernel.run(args);
  expectNear(result, std::sqrt(sum), 1e-5, 1, 0);
}

} // namespace
