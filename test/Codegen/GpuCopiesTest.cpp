// Rows that a GPU stores as they lie and transposed.
#include "test/Codegen/Comparison.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

// Scaled rows, as they lie and transposed; the rows are of two dims, which are
// one where the transposed copy has them side by side, too.
constexpr const char *copies = R"(
#d = #transformer.dims<batch, rows, cols>
#t = #transformer.dims<$D>
#r = #transformer.dims<batch, rows>
!x = tensor<2x$Rx$Cx$T, #d>
!y = tensor<2x$Rx$Cxf8E5M2, #d>
!t = tensor<$Sx$Rx$O, #t>
!r = tensor<2x$Rxf32, #r>
func.func @f(%x: !x, %s: !r) -> ($Y!t) {
  %y:$N = transformer.fused rows #r cols <cols> ins(%x, %s : !x, !r) -> $Y!t {
  ^bb0(%a: !x, %b: !r):
    %c = transformer.map ins(%a, %b : !x, !r) -> !y {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.mulf %p, %q : f32
      transformer.yield %0 : f32
    }
    %t = transformer.map ins(%a, %b : !x, !r) -> !t {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.mulf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield $V%t : $Y!t
  }
  return $Z : $Y!t
}
)";

struct CopyCase {
  int64_t rows, cols;
  const char *from, *to;
  bool both;        // not the transposed one alone
  bool joined;      // rows
  int64_t tileRows; // of a thread
};

std::string textOf(const CopyCase &copy) {
  return fill(copies,
              {{"R", std::to_string(copy.rows)},
               {"C", std::to_string(copy.cols)},
               {"T", copy.from},
               {"O", copy.to},
               {"D", copy.joined ? "cols, batch, rows" : "batch, cols, rows"},
               {"S", (copy.joined ? std::to_string(copy.cols) + "x2"
                                  : "2x" + std::to_string(copy.cols))},
               {"N", copy.both ? "2" : "1"},
               {"Y", copy.both ? "!y, " : ""},
               {"V", copy.both ? "%c, " : ""},
               {"Z", copy.both ? "%y#0, %y#1" : "%y#0"}});
}

// Threads store eight rows of a column at once, or as many as divide the rows.
TEST(GpuTransposedCopies, AgreeWithTheCpu) {
  for (const CopyCase &copy :
       {CopyCase{256, 128, "bf16", "f8E4M3FN", true, true, 8},
        {40, 72, "f32", "f8E5M2", true, false, 8},
        {8, 8, "bf16", "bf16", false, true, 8},
        {12, 200, "bf16", "f8E4M3FN", true, false, 4},
        {6, 24, "f32", "f32", false, true, 4},
        {7, 40, "bf16", "f8E5M2", true, true, 2},
        {7, 40, "bf16", "f8E5M2", true, false, 1},
        {16, 9, "bf16", "f8E4M3FN", false, true, 1}}) {
    SCOPED_TRACE(textOf(copy));
    expectCpuResults(textOf(copy), {.arch = "sm_90a"}, [&](const Geometry &g) {
      EXPECT_EQ(g.tileRows, copy.tileRows);
    });
  }
}

// What delayed scaling makes of a gradient: the product of two tensors in both
// layouts, and the largest magnitude of all of it, in parts.
constexpr const char *withMaximum = R"(
#d = #transformer.dims<batch, rows, cols>
#t = #transformer.dims<cols, batch, rows>
!x = tensor<2x$Rx$Cxbf16, #d>
!f = tensor<2x$Rx$Cxf32, #d>
!y = tensor<2x$Rx$Cxf8E5M2, #d>
!t = tensor<$Cx2x$Rxf8E5M2, #t>
!m = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x, %g: !x, %s: tensor<f32>) -> (!m, !y, !t) {
  %y:3 = transformer.fused rows <batch, rows> cols <cols> ins(%x, %g, %s : !x, !x, tensor<f32>) -> !m, !y, !t {
  ^bb0(%a: !x, %b: !x, %q: tensor<f32>):
    %p = transformer.map ins(%a, %b : !x, !x) -> !f {
    ^bb0(%i: f32, %j: f32):
      %0 = arith.mulf %i, %j : f32
      transformer.yield %0 : f32
    }
    %h = transformer.map ins(%p : !f) -> !f {
    ^bb0(%i: f32):
      %0 = math.absf %i : f32
      transformer.yield %0 : f32
    }
    %m = transformer.reduce max %h over <batch, rows, cols> : !f -> tensor<f32>
    %c = transformer.map ins(%p, %q : !f, tensor<f32>) -> !y {
    ^bb0(%i: f32, %j: f32):
      %0 = arith.mulf %i, %j : f32
      transformer.yield %0 : f32
    }
    %t = transformer.map ins(%p, %q : !f, tensor<f32>) -> !t {
    ^bb0(%i: f32, %j: f32):
      %0 = arith.mulf %i, %j : f32
      transformer.yield %0 : f32
    }
    transformer.yield %m, %c, %t : tensor<f32>, !y, !t
  }
  return %y#0, %y#1, %y#2 : !m, !y, !t
}
)";

std::string withMaximumOf(int64_t rows, int64_t cols, int64_t chunks) {
  return fill(withMaximum, {{"R", std::to_string(rows)},
                            {"C", std::to_string(cols)},
                            {"K", std::to_string(chunks)}});
}

/// Which elements a part of the maximum is of differs from a CPU's parts, so
/// one part is compared.
TEST(GpuTransposedCopies, FindTheLargestOfAllOnTheWay) {
  for (auto [rows, cols, tileRows] :
       {std::tuple<int64_t, int64_t, int64_t>{256, 128, 8},
        {40, 1032, 8},
        {6, 200, 4},
        {7, 40, 2}}) {
    SCOPED_TRACE(withMaximumOf(rows, cols, 1));
    expectCpuResults(withMaximumOf(rows, cols, 1), {.arch = "sm_90a"},
                     [&, tileRows = tileRows](const Geometry &g) {
                       EXPECT_EQ(g.tileRows, tileRows);
                       EXPECT_EQ(g.grid(), 1);
                     });
  }
}

/// Parts have equal maxima, as all elements have one magnitude.
TEST(GpuTransposedCopies, FindTheLargestInParts) {
  auto toOneMagnitude = [](std::vector<Tensor> &operands) {
    for (Tensor &tensor : operands)
      for (size_t i = 0; tensor.element.isBF16() && i < tensor.count(); ++i) {
        uint16_t &bits = reinterpret_cast<uint16_t *>(tensor.begin())[i];
        bits = static_cast<uint16_t>((bits & 0x8000) | 0x3fc0); // 1.5
      }
  };
  for (int64_t chunks : {3, 5})
    expectCpuResults(withMaximumOf(520, 264, chunks),
                     {.arch = "sm_90a", .change = toOneMagnitude},
                     [&](const Geometry &g) {
                       EXPECT_EQ(g.tileRows, 8);
                       EXPECT_EQ(g.grid(), chunks);
                       EXPECT_GT(g.blocksOfTiles(), chunks);
                     });
}

// The gradient of rotary embedding, as it lies and with tokens last, as the
// product for a weight's gradient reads it: heads lie between the two.
constexpr const char *rope = R"(
#x = #transformer.dims<batch, sequence, heads, head_dim>
#t = #transformer.dims<heads, head_dim, batch, sequence>
#c = #transformer.dims<sequence, head_dim>
!x = tensor<2x$Rx3x$Dxbf16, #x>
!t = tensor<3x$Dx2x$Rxf8E5M2, #t>
!c = tensor<$Rx$Dxf32, #c>
func.func @f(%x: !x, %c: !c) -> !t {
  %r = transformer.fused rows <batch, sequence, heads> cols <head_dim> ins(%x, %c : !x, !c) -> !t {
  ^bb0(%a: !x, %cos: !c):
    %b = transformer.roll %a by $H : !x
    %y = transformer.map ins(%a, %b, %cos : !x, !x, !c) -> !t {
    ^bb0(%p: f32, %q: f32, %i: f32):
      %0 = arith.mulf %p, %i : f32
      %1 = arith.addf %0, %q : f32
      transformer.yield %1 : f32
    }
    transformer.yield %y : !t
  }
  return %r : !t
}
)";

TEST(GpuTransposedCopies, OfRowsThatAreNotTheInnermost) {
  for (auto [rows, headDim, tileRows] :
       {std::tuple<int64_t, int64_t, int64_t>{64, 64, 8},
        {36, 128, 4},
        {7, 64, 1}}) {
    std::string text = fill(rope, {{"R", std::to_string(rows)},
                                   {"D", std::to_string(headDim)},
                                   {"H", std::to_string(headDim / 2)}});
    SCOPED_TRACE(text);
    expectCpuResults(text, {.arch = "sm_90a"}, [&](const Geometry &g) {
      EXPECT_EQ(g.tileRows, tileRows);
    });
  }
}

} // namespace
} // namespace meshwork::codegen
