// Products by cuBLASLt against loops in double precision (BlasLtCase.h).
#include "runtime/device/cuda/BlasLtProblem.h"
#include "test/Runtime/cuda/BlasLtCase.h"

namespace meshwork::runtime::cuda::test {
namespace {
class Products : public ::testing::TestWithParam<Case> {};

TEST_P(Products, AreThoseOfTheLoops) {
  TestDevice on;
  Problem problem(on, GetParam());
  const Case &c = problem.c;
  NoEpilogues without(c.lacks);
  auto blas = BlasLt::create(*on.driver);
  expectOk(blas.status());
  auto product = (*blas)->prepare(problem.request);
  expectOk(product.status());
  // The library adds a bias along the dense dim alone.
  bool isBeside = c.lacks || c.dstTransposed ||
                  (plan::isFloat8(c.in) && c.out == DType::f32);
  EXPECT_EQ((*product)->whyBeside().empty(), !c.bias || !isBeside);
  // A kernel beside rounds twice.
  double rounding =
      c.out == DType::bf16 ? std::ldexp(double(c.k) + 2, c.bias ? -8 : -9) : 0;
  double tolerance = std::ldexp(4.0 * double(c.k), -24) + rounding;
  for (bool tuned : {false, true}) {
    if (tuned)
      expectOk((*product)->tune(on.stream));
    for (bool adds : {false, true}) {
      SCOPED_TRACE(std::string(adds ? "adds" : "overwrites") +
                   (tuned ? ", tuned" : ""));
      // NaN must not come through where nothing is added.
      problem.dst.write(on,
                        adds ? problem.before
                             : std::vector<float>(problem.before.size(), NAN));
      expectOk((*product)->run(on.stream, adds));
      std::vector<float> result = problem.dst.read(on, problem.before.size());
      double worst = 0;
      for (size_t i = 0; i < result.size(); ++i)
        worst =
            std::max(worst, std::abs(result[i] - problem.expected(i, adds)));
      EXPECT_LE(worst, tolerance);
    }
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases = layoutsOf({1, 7, 33, 19}, {3, 40, 16, 19});
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2;
  for (auto [lhs, rhs] : {std::pair(e4m3, e4m3), {e4m3, e5m2}, {e5m2, e4m3}})
    for (DType out : {DType::f32, DType::bf16})
      for (bool transposed : {false, true}) {
        Case c{2, 32, 48, 80, lhs, out, false, true, transposed};
        c.rhs = rhs;
        cases.push_back(c);
        c.padding = 16;
        c.bias = true;
        cases.push_back(c);
      }
  cases.push_back({1, 1, 5, 8});
  cases.push_back({2, 9, 1, 4, DType::bf16, DType::bf16});
  cases.push_back({1, 600, 530, 3, DType::bf16, DType::f32});
  cases.push_back({1, 6, 5, 9, DType::f32, DType::f32, true});
  cases.back().workspaceBytes = 0;
  for (size_t i = 0, count = cases.size(); i < count; ++i)
    if (cases[i].bias && !cases[i].dstTransposed) {
      cases.push_back(cases[i]);
      cases.back().lacks = true;
    }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, Products, ::testing::ValuesIn(allCases()));

TEST(BlasLt, RefusesWhatItCannotMultiply) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver);
  expectOk(blas.status());
  Problem problem(on, {2, 4, 8, 3, DType::bf16, DType::bf16});
  auto with = [&](auto change) {
    MatmulRequest request = problem.request;
    change(request);
    return request;
  };
  constexpr auto unimplemented = absl::StatusCode::kUnimplemented,
                 invalid = absl::StatusCode::kInvalidArgument;
  std::string text = refusal(
      **blas, with([](auto &r) { r.lhs.dtype = DType::f32; }), unimplemented);
  EXPECT_HAS(text, "matmul \"h.0\": multiplies f32 by bf16 into bf16");
  text = refusal(**blas, with([](auto &r) { r.dst.dtype = DType::i32; }),
                 unimplemented);
  EXPECT_HAS(text, "bf16 by bf16 into i32");
  text = refusal(**blas, with([](auto &r) { r.rhs.shape[1] = 5; }), invalid);
  EXPECT_HAS(text, "expected shape [2, 3, 8]");
  text = refusal(**blas, with([](auto &r) { r.lhs.strides[2] = 2; }),
                 unimplemented);
  EXPECT_HAS(text, "lhs is bf16[2, 4, 3] with strides [12, 3, 2]");
  text = refusal(**blas, with([](auto &r) { r.workspace += 16; }), invalid);
  EXPECT_HAS(text, "expected a multiple of 256");
  DeviceView bias{problem.request.workspace, DType::bf16, {4}, {1}};
  text = refusal(**blas, with([&](auto &r) { r.bias = bias; }), invalid);
  EXPECT_HAS(text, "expected 8 dense elements");
}

TEST(BlasLt, RefusesWhatTensorCoresDoNotTakeOf8Bits) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver);
  expectOk(blas.status());
  Case good{1, 32, 48, 16, DType::e4m3, DType::bf16, false, true};
  constexpr auto unimplemented = absl::StatusCode::kUnimplemented;
  auto textOf = [&](Case c, auto change,
                    absl::StatusCode code = unimplemented) {
    Problem problem(on, c);
    change(problem.request);
    return refusal(**blas, problem.request, code);
  };
  auto nothing = [](MatmulRequest &) {};
  Case other = good;
  other.k = 24;
  EXPECT_HAS(textOf(other, nothing), "lhs is e4m3[1, 32, 24]");
  EXPECT_HAS(textOf(other, nothing), "expected multiples of 16");
  other = good;
  other.rhsTransposed = false;
  EXPECT_HAS(textOf(other, nothing), "expected both dense along the dim");
  other = good;
  other.padding = 8;
  EXPECT_HAS(textOf(other, nothing), "expected all rows at multiples of 16");
  other = good;
  other.in = DType::e5m2;
  EXPECT_HAS(textOf(other, nothing), "multiplies e5m2 by e5m2 into bf16");
  EXPECT_HAS(textOf(
                 good, [](auto &r) { r.rhsScale = 0; },
                 absl::StatusCode::kInvalidArgument),
             "have no scales");
  EXPECT_HAS(textOf(good, [](auto &r) { r.lhs.address += 8; }),
             "expected all rows at multiples of 16 bytes");
}

// Two e4m3 are multiplied in the forward pass alone.
TEST(BlasLt, AddsUpFastWithoutGradients) {
  TestDevice on;
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2, bf16 = DType::bf16;
  for (auto [lhs, rhs, isFast] : {std::tuple(e4m3, e4m3, true),
                                  {e4m3, e5m2, false},
                                  {e5m2, e4m3, false},
                                  {bf16, bf16, false}}) {
    Case c{1, 32, 48, 16, lhs, bf16, false, true};
    c.rhs = rhs;
    auto problem = problemOf(Problem(on, c).request);
    expectOk(problem.status());
    EXPECT_EQ(problem->accumulatesFast(), isFast);
  }
}

TEST(BlasLt, NamesTheMatmulThatFails) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver);
  expectOk(blas.status());
  Problem problem(on, {1, 4, 4, 4});
  // Less aligned than its element.
  problem.request.lhs.address += 2;
  auto product = (*blas)->prepare(problem.request);
  expectOk(product.status());
  absl::Status status = (*product)->run(on.stream, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_HAS(std::string(status.message()),
             "cublasLtMatmul for matmul \"h.0\"");
  EXPECT_HAS(std::string(status.message()), "CUBLAS_STATUS_NOT_SUPPORTED (15)");
}

} // namespace
} // namespace meshwork::runtime::cuda::test
