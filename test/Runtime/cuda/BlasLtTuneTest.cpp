// Which of the ways to run a product is kept.
#include "test/Runtime/cuda/BlasLtCase.h"

namespace meshwork::runtime::cuda::test {
namespace {
/// What runs is what was fastest: a split sum has other bits than a whole one.
TEST(BlasLt, KeepsTheFastest) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver);
  expectOk(blas.status());
  std::vector<std::vector<float>> results;
  int64_t k = 301; // another problem, or the process would know the answer
  for (const char *slow : {"0", "1"}) {
    ::setenv("MESHWORK_EMULATOR_BLAS_SLOW", slow, 1);
    Problem problem(on, {1, 16, 16, 301});
    problem.request.workspaceBytes = 8192 + size_t(k++);
    auto product = (*blas)->prepare(problem.request);
    ::unsetenv("MESHWORK_EMULATOR_BLAS_SLOW");
    expectOk(product.status());
    expectOk((*product)->tune(on.stream));
    expectOk((*product)->run(on.stream, false));
    results.push_back(problem.dst.read(on, problem.before.size()));
  }
  EXPECT_NE(results[0], results[1]);
}

} // namespace
} // namespace meshwork::runtime::cuda::test
