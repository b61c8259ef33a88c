// Softmax cross-entropy and its gradient: maximum, sum of exponentials, store.
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

constexpr const char *crossEntropy = R"(
#r = #transformer.dims<rows>
#v = #transformer.dims<vocab>
#rv = #transformer.dims<rows, vocab>
!x = tensor<$Rx$Vx$T, #rv>
!f = tensor<$Rx$Vxf32, #rv>
!r = tensor<$Rxf32, #r>
!i = tensor<$Rxi32, #r>
!k = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x, %t: !i) -> (!x, !k) {
  %g, %l = transformer.fused rows #r cols #v ins(%x, %t : !x, !i) -> !x, !k {
  ^bb0(%a: !x, %b: !i):
    %m = transformer.reduce max %a over #v : !x -> !r
    %e = transformer.map ins(%a, %m : !x, !r) -> !f {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.subf %p, %q : f32
      %1 = math.exp %0 : f32
      transformer.yield %1 : f32
    }
    %s = transformer.reduce add %e over #v : !f -> !r
    %hit = transformer.map ins(%a, %b : !x, !i) -> !f {
    ^bb0(%p: f32, %q: i32):
      %c = transformer.index "vocab" : i32
      %zero = arith.constant 0.0 : f32
      %0 = arith.cmpi eq, %c, %q : i32
      %1 = arith.select %0, %p, %zero : f32
      transformer.yield %1 : f32
    }
    %z = transformer.reduce add %hit over #v : !f -> !r
    %loss = transformer.map ins(%m, %s, %z : !r, !r, !r) -> !r {
    ^bb0(%p: f32, %q: f32, %h: f32):
      %0 = math.log %q : f32
      %1 = arith.addf %0, %p : f32
      %2 = arith.subf %1, %h : f32
      transformer.yield %2 : f32
    }
    %total = transformer.reduce add %loss over #r : !r -> tensor<f32>
    %g = transformer.map ins(%e, %s, %b : !f, !r, !i) -> !x {
    ^bb0(%p: f32, %q: f32, %h: i32):
      %c = transformer.index "vocab" : i32
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      %scale = arith.constant 0.125 : f32
      %0 = arith.divf %p, %q : f32
      %1 = arith.cmpi eq, %c, %h : i32
      %2 = arith.select %1, %one, %zero : f32
      %3 = arith.subf %0, %2 : f32
      %4 = arith.mulf %3, %scale : f32
      transformer.yield %4 : f32
    }
    transformer.yield %g, %total : !x, tensor<f32>
  }
  return %g, %l : !x, !k
}
)";

std::string textFor(int64_t rows, int64_t vocab, int64_t chunks, const char *type) {
  return fill(crossEntropy, {{"R", std::to_string(rows)}, {"V", std::to_string(vocab)}, {"K", std::to_string(chunks)}, {"T", type}});
}

TEST(CrossEntropy, AgreesWithDoubles) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, vocab, chunks] : {std::tuple<int64_t, int64_t, int64_t>{5, 50257, 2}, {9, 256, 4}, {3, 11, 1}, {4, 17, 3}}) {
      Kernel kernel(textFor(rows, vocab, chunks, "f32"), arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      auto x = randomFloats(rows * vocab, -10, 10);
      std::vector<int32_t> targets(rows);
      for (int64_t r = 0; r < rows; ++r)
        targets[r] = (r * 7919 + vocab - 1) % vocab;
      std::vector<float> gradient(x.size()), loss(chunks), loss2(chunks);
      kernel.run({x.data(), targets.data(), gradient.data(), loss.data()});
      for (int64_t c = 0; c < chunks; ++c) {
        double total = 0;
        for (int64_t r = c * rows / chunks; r < (c + 1) * rows / chunks; ++r) {
          double sum = 0;
          for (int64_t v = 0; v < vocab; ++v)
            sum += std::exp(double(x[r * vocab + v]));
          total += std::log(sum) - x[r * vocab + targets[r]];
          // x - max is rounded at 20, 1e-6; 785 additions of a lane, 2e-5 at worst.
          for (int64_t v = 0; v < vocab; ++v)
            expectNear(gradient[r * vocab + v], (std::exp(double(x[r * vocab + v])) / sum - (v == targets[r])) * 0.125, 2e-5, 1e-6, r * vocab + v);
        }
        expectNear(loss[c], total, 2e-5, 1, c);
      }
      kernel.run({x.data(), targets.data(), x.data(), loss2.data()}, 1);
      EXPECT_EQ(x, gradient);
      EXPECT_EQ(loss, loss2);
    }
}

TEST(CrossEntropy, Bf16RoundsOnce) {
  for (const std::string &arch : runnableArchs()) {
    constexpr int64_t rows = 4, vocab = 1003;
    Kernel kernel(textFor(rows, vocab, 2, "bf16"), arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    auto x = toBf16(randomFloats(rows * vocab, -10, 10));
    std::vector<int32_t> targets = {0, 1002, 500, 17};
    std::vector<uint16_t> gradient(x.size());
    std::vector<float> loss(2);
    kernel.run({x.data(), targets.data(), gradient.data(), loss.data()});
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t v = 0; v < vocab; ++v)
        sum += std::exp(double(fromBf16(x[r * vocab + v])));
      for (int64_t v = 0; v < vocab; ++v) {
        double exact = (std::exp(double(fromBf16(x[r * vocab + v]))) / sum - (v == targets[r])) * 0.125;
        // Half of bf16's last place, and the error before rounding.
        expectNear(fromBf16(gradient[r * vocab + v]), exact, 1.0 / 256 + 1e-5, 1e-30, r * vocab + v);
      }
    }
  }
}

TEST(CrossEntropy, NanInLogitsReachesTheLoss) {
  Kernel kernel(textFor(2, 100, 2, "f32"), "native");
  auto x = randomFloats(200);
  x[150] = NAN;
  std::vector<int32_t> targets = {3, 4};
  std::vector<float> gradient(200), loss(2);
  kernel.run({x.data(), targets.data(), gradient.data(), loss.data()});
  EXPECT_TRUE(std::isfinite(loss[0]));
  EXPECT_TRUE(std::isnan(loss[1]));
}

} // namespace
