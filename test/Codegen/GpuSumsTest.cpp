// Sums and maxima over rows and over chunks, on a GPU.
#include "test/Codegen/Comparison.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

constexpr const char *columnSums = R"(
#d = #transformer.dims<rows, cols>
#r = #transformer.dims<rows>
!x = tensor<$Rx$Cx$T, #d>
!k = tensor<$Kx$Cxf32, #transformer.dims<chunk, cols>>
!w = tensor<$Cxf32, #transformer.dims<cols>>
func.func @f(%x: !x) -> !k {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !k {
  ^bb0(%a: !x):
    %s = transformer.reduce add %a over #r : !x -> !w
    transformer.yield %s : !w
  }
  return %y : !k
}
)";
constexpr const char *chunkSums = R"(
#k = #transformer.dims<chunk, cols>
#h = #transformer.dims<chunk>
#c = #transformer.dims<cols>
!k = tensor<$Kx$Cxf32, #k>
!w = tensor<$Cx$T, #c>
!f = tensor<$Cxf32, #c>
func.func @f(%g: !w, %x: !k) -> !w {
  %y = transformer.fused rows <> cols #c ins(%g, %x : !w, !k) -> !w {
  ^bb0(%b: !w, %a: !k):
    %s = transformer.reduce add %a over #h : !k -> !f
    %z = transformer.map ins(%b, %s : !w, !f) -> !w {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield %z : !w
  }
  return %y : !w
}
)";
constexpr const char *squares = R"(
#d = #transformer.dims<rows, cols>
!x = tensor<$Rx$Cx$T, #d>
!f = tensor<$Rx$Cxf32, #d>
!k = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x) -> !k {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !k {
  ^bb0(%a: !x):
    %m = transformer.map ins(%a : !x) -> !f {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %s = transformer.reduce add %m over #d : !f -> tensor<f32>
    transformer.yield %s : tensor<f32>
  }
  return %y : !k
}
)";

TEST(GpuSumsOverRows, AgreeWithTheCpu) {
  for (auto [rows, cols, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 768, 8},
        {13, 100, 4},
        {6, 37, 32},
        {300, 5, 3},
        {1, 5, 1},
        {2, 1, 1},
        {1, 1, 1}})
    for (const char *type : {"f32", "bf16"}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                   type);
      expectCpuResults(sized(columnSums, rows, cols, type, chunks),
                       {.relative = 1e-5});
      expectCpuResults(sized(chunkSums, rows, cols, type, chunks),
                       {.inPlace = true});
      expectCpuResults(sized(squares, rows, cols, type, chunks),
                       {.relative = 1e-5});
    }
}

/// The same cluster with maxima in the place of sums.
std::string maximaOf(std::string text) {
  constexpr std::string_view sum = "reduce add", maximum = "reduce max";
  for (size_t at = 0; (at = text.find(sum, at)) != std::string::npos;)
    text.replace(at, sum.size(), maximum);
  return text;
}

TEST(GpuMaximaOverRows, AgreeWithTheCpu) {
  for (auto [rows, cols, chunks] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 768, 8},
        {13, 100, 4},
        {37, 37, 32},
        {2, 20011, 2},
        {300, 5, 3}})
    for (const char *type : {"f32", "bf16"})
      for (const char *text : {columnSums, chunkSums, squares}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " " +
                     type);
        expectCpuResults(maximaOf(sized(text, rows, cols, type, chunks)),
                         {.relative = 0});
      }
}

constexpr const char *chunksOfScalar = R"(
#h = #transformer.dims<chunk>
!k = tensor<$Kxf32, #h>
!c = tensor<$Cxf32, #h>
func.func @f(%x: !k, %y: !c) -> tensor<f32> {
  %z = transformer.fused rows <> cols <> ins(%x, %y : !k, !c) -> tensor<f32> {
  ^bb0(%a: !k, %b: !c):
    %s = transformer.reduce add %a over #h : !k -> tensor<f32>
    %t = transformer.reduce add %b over #h : !c -> tensor<f32>
    %r = transformer.map ins(%s, %t : tensor<f32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield %r : tensor<f32>
  }
  return %z : tensor<f32>
}
)";

// Threads share a sum of many chunks, and all of them take part in each
// exchange.
TEST(GpuSumsOfChunks, ThreadsShareThem) {
  struct Case {
    int64_t chunks, cols, parts,
        partsOfBf16; // vectors of bf16 have twice the columns
  };
  for (Case c : {Case{256, 768, 16, 32},
                 {256, 40, 16, 32},
                 {256, 33, 4, 4},
                 {256, 7, 4, 4},
                 {48, 64, 4, 4},
                 {250, 64, 16, 16},
                 {15, 64, 1, 1},
                 {257, 24, 16, 32},
                 {16, 1 << 16, 1, 1}}) {
    auto expectParts = [&](int64_t parts) {
      return [=](const Geometry &g) {
        EXPECT_EQ(g.verticalParts, parts)
            << c.chunks << " chunks of " << c.cols;
      };
    };
    expectCpuResults(sized(chunkSums, 1, c.cols, "f32", c.chunks),
                     {.relative = 1e-5, .inPlace = true}, expectParts(c.parts));
    expectCpuResults(sized(chunkSums, 1, c.cols, "bf16", c.chunks),
                     {.inPlace = true}, expectParts(c.partsOfBf16));
  }
  for (auto [chunks, parts] : {std::pair<int64_t, int64_t>{256, 32},
                               {32, 4},
                               {100, 8},
                               {255, 16},
                               {300, 32},
                               {15, 1}})
    // Beside a sum of as many, of fewer than threads, and of a single one.
    for (int64_t others : {chunks, int64_t{9}, int64_t{1}})
      expectCpuResults(
          sized(chunksOfScalar, 1, others, "f32", chunks), {.relative = 1e-5},
          [&, parts = parts](const Geometry &g) {
            EXPECT_EQ(g.verticalParts, parts) << chunks << " and " << others;
          });
}

} // namespace
} // namespace meshwork::codegen
