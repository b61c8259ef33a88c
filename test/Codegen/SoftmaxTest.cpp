// Softmax cross-entropy and its gradient: maximum, sum of exponentials, store.
#include "test/Codegen/Clusters.h"
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

std::string textFor(int64_t rows, int64_t vocab, int64_t chunks,
                    const char *type) {
  return fill(crossEntropy, {{"R", std::to_string(rows)},
                             {"V", std::to_string(vocab)},
                             {"K", std::to_string(chunks)},
                             {"T", type}});
}

TEST(CrossEntropy, AgreesWithDoubles) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, vocab, chunks] :
         {std::tuple<int64_t, int64_t, int64_t>{5, 50257, 2},
          {9, 256, 4},
          {3, 11, 1},
          {4, 17, 3}}) {
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
          // x - max is rounded at 20, 1e-6; 785 additions of a lane, 2e-5 at
          // worst.
          for (int64_t v = 0; v < vocab; ++v)
            expectNear(
                gradient[r * vocab + v],
                (std::exp(double(x[r * vocab + v])) / sum - (v == targets[r])) *
                    0.125,
                2e-5, 1e-6, r * vocab + v);
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
        double exact = (std::exp(double(fromBf16(x[r * vocab + v]))) / sum -
                        (v == targets[r])) *
                       0.125;
        // Half of bf16's last place, and the error before rounding.
        expectNear(fromBf16(gradient[r * vocab + v]), exact, 1.0 / 256 + 1e-5,
                   1e-30, r * vocab + v);
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
