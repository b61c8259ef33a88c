// Row reductions: residual add, RMSNorm and LayerNorm with two results.
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

constexpr const char *rmsNorm = R"(
#d = #transformer.dims<rows, cols>
#r = #transformer.dims<rows>
#c = #transformer.dims<cols>
!x = tensor<$Rx$Cx$T, #d>
!f = tensor<$Rx$Cxf32, #d>
!r = tensor<$Rxf32, #r>
!w = tensor<$Cxf32, #c>
func.func @f(%x: !x, %y: !x, %w: !w) -> (!x, !x) {
  %sum, %norm = transformer.fused rows #r cols #c ins(%x, %y, %w : !x, !x, !w) -> !x, !x {
  ^bb0(%a: !x, %b: !x, %g: !w):
    %s = transformer.map ins(%a, %b : !x, !x) -> !x {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    %sq = transformer.map ins(%s : !x) -> !f {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %ss = transformer.reduce add %sq over #c : !f -> !r
    %n = transformer.map ins(%s, %ss, %g : !x, !r, !w) -> !x {
    ^bb0(%p: f32, %t: f32, %h: f32):
      %inverse = arith.constant $I : f32
      %eps = arith.constant 1.0e-5 : f32
      %m = arith.mulf %t, %inverse : f32
      %e = arith.addf %m, %eps : f32
      %i = math.rsqrt %e : f32
      %1 = arith.mulf %p, %i : f32
      %2 = arith.mulf %1, %h : f32
      transformer.yield %2 : f32
    }
    transformer.yield %s, %n : !x, !x
  }
  return %sum, %norm : !x, !x
}
)";

TEST(RmsNorm, AgreesWithDoubles) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols] : {std::pair<int64_t, int64_t>{37, 768}, {3, 1}, {5, 8}, {7, 12}, {9, 100}, {2, 50257}, {130, 3}}) {
      Kernel kernel(fill(rmsNorm, {{"R", std::to_string(rows)}, {"C", std::to_string(cols)}, {"T", "f32"}, {"I", std::to_string(1.0 / cols)}}), arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      auto x = randomFloats(rows * cols), y = randomFloats(rows * cols, -1, 1, 2), w = randomFloats(cols, 0.5, 1.5, 3);
      std::vector<float> sum(x.size()), norm(x.size()), again(x.size());
      kernel.run({x.data(), y.data(), w.data(), sum.data(), norm.data()});
      double inverse = std::stof(std::to_string(1.0 / cols));
      for (int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (int64_t c = 0; c < cols; ++c)
          squares += std::pow(double(x[r * cols + c] + y[r * cols + c]), 2);
        double scale = 1 / std::sqrt(squares * inverse + 1e-5);
        for (int64_t c = 0; c < cols; ++c) {
          size_t i = r * cols + c;
          ASSERT_EQ(sum[i], x[i] + y[i]);
          expectNear(norm[i], sum[i] * scale * w[c], 2e-6, 1e-3, i);
        }
      }
      // In place, one item at a time: the same bits.
      kernel.run({x.data(), y.data(), w.data(), x.data(), again.data()}, 1);
      EXPECT_EQ(x, sum);
      EXPECT_EQ(again, norm);
    }
}

} // namespace
