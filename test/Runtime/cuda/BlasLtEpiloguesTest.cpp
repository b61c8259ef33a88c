// Epilogues of products, by cuBLASLt and by the kernels beside where it has
// none, against formulas in double precision (BlasLtCase.h).
#include "test/Runtime/cuda/BlasLtCase.h"

namespace meshwork::runtime::cuda::test {
namespace {
double gelu(double x) {
  return x / 2 *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluGradient(double x) {
  double h = 1e-5; // exact enough, and not the formula again
  return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

/// One product and an epilogue; aux as `problem` allocates it.
struct Epilogues : ::testing::TestWithParam<Case> {
  TestDevice on;
  Problem problem{on, GetParam()};
  NoEpilogues without{GetParam().lacks};
  std::unique_ptr<BlasLt> blas = *BlasLt::create(*on.driver);
  const Case &c = problem.c;
  // GELU's slope is below 1.13, so is what it makes of an error.
  double tolerance =
      std::ldexp(8.0 * double(c.k), -24) +
      (c.out == DType::bf16 ? std::ldexp(double(c.k) + 2, -8) : 1e-6);

  void run(plan::Epilogue epilogue, const Matrix *aux, bool adds = false) {
    MatmulRequest request = problem.request;
    request.epilogue = epilogue;
    if (aux)
      request.aux = aux->view;
    run(request, adds);
  }
  void run(const MatmulRequest &request, bool adds) {
    problem.dst.write(on, adds
                              ? problem.before
                              : std::vector<float>(problem.before.size(), NAN));
    auto product = blas->prepare(request);
    expectOk(product.status());
    EXPECT_EQ((*product)->whyBeside().empty(), !c.lacks);
    expectOk((*product)->run(on.stream, adds));
  }
  void expectNear(const std::vector<float> &found, auto expected) {
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(found[i] - expected(i)));
    EXPECT_LE(worst, tolerance);
  }
  std::vector<float> result() {
    return problem.dst.read(on, problem.before.size());
  }
};

struct GeluEpilogue : Epilogues {};
TEST_P(GeluEpilogue, IsAppliedToTheSum) {
  Matrix aux(on, c.out, 1, c.m, c.n, false, 8 + (8 - c.n % 8) % 8);
  aux.write(on, std::vector<float>(problem.before.size(), NAN));
  auto sum = [&](size_t i) { return problem.expected(i, false); };
  for (bool keeps : {false, true}) {
    run(plan::Epilogue::gelu, keeps ? &aux : nullptr);
    expectNear(result(), [&](size_t i) { return gelu(sum(i)); });
  }
  expectNear(aux.read(on, problem.before.size()), sum);
}

struct GeluGradientEpilogue : Epilogues {};
TEST_P(GeluGradientEpilogue, MultipliesTheSum) {
  Matrix aux(on, c.out, 1, c.m, c.n, false, (8 - c.n % 8) % 8);
  std::vector<float> inputs = randomValues(problem.before.size(), c.out, 5);
  for (float &input : inputs)
    input *= 4;
  aux.write(on, inputs);
  run(plan::Epilogue::gelu_grad, &aux);
  expectNear(result(), [&](size_t i) {
    return problem.expected(i, false) * geluGradient(double(inputs[i]));
  });
}

struct SumEpilogue : Epilogues {};
TEST_P(SumEpilogue, OverwritesAlsoWhereTheProductAdds) {
  for (bool adds : {false, true})
    for (bool ofLhs : {false, true}) {
      size_t count = size_t(ofLhs ? c.m : c.n), k = size_t(c.k);
      Matrix sums(on, c.out, 1, 1, int64_t(count), false, 0);
      sums.write(on, std::vector<float>(count, NAN));
      MatmulRequest request = problem.request;
      request.epilogue =
          ofLhs ? plan::Epilogue::sum_lhs : plan::Epilogue::sum_rhs;
      request.aux = sums.view;
      request.aux->shape = {int64_t(count)};
      request.aux->strides = {1};
      run(request, adds);
      expectNear(result(), [&](size_t i) { return problem.expected(i, adds); });
      expectNear(sums.read(on, count), [&](size_t i) {
        double sum = 0;
        for (size_t j = 0; j < k; ++j)
          sum += ofLhs ? problem.lhsValues[i * k + j]
                       : problem.rhsValues[j * count + i];
        return sum;
      });
    }
}

/// Those of the library, of which `has` tells, and by the kernels beside all
/// that differ in what a kernel sees.
std::vector<Case> epilogueCases(bool allowsBias, bool (*has)(const Case &),
                                bool (*kernelSees)(const Case &)) {
  std::vector<Case> cases;
  for (const Case &c : layoutsOf({1, 12, 32, 19}, {1, 600, 21, 19})) {
    if (c.bias && !allowsBias)
      continue;
    if (has(c))
      cases.push_back(c);
    if (kernelSees(c))
      cases.push_back(c), cases.back().lacks = true;
  }
  return cases;
}
bool hasDenseRows(const Case &c) { return !c.dstTransposed; }
bool hasAll(const Case &) { return true; }
bool isPlain(const Case &c) { return !c.lhsTransposed && !c.rhsTransposed; }
INSTANTIATE_TEST_SUITE_P(All, GeluEpilogue,
                         ::testing::ValuesIn(epilogueCases(true, hasDenseRows,
                                                           isPlain)));
INSTANTIATE_TEST_SUITE_P(All, GeluGradientEpilogue,
                         ::testing::ValuesIn(epilogueCases(false, hasDenseRows,
                                                           isPlain)));
INSTANTIATE_TEST_SUITE_P(All, SumEpilogue,
                         ::testing::ValuesIn(epilogueCases(false, hasAll,
                                                           hasDenseRows)));

/// Requests with an epilogue or a bias, changed a little each.
struct Beside : ::testing::Test {
  TestDevice on;
  std::unique_ptr<BlasLt> blas = *BlasLt::create(*on.driver);
  Problem problem{on, {1, 16, 32, 16, DType::bf16, DType::bf16}};
  Matrix aux{on, DType::bf16, 1, 16, 32, false, 0};

  MatmulRequest with(plan::Epilogue epilogue, auto change) {
    MatmulRequest request = problem.request;
    request.epilogue = epilogue;
    request.aux = aux.view;
    change(request);
    return request;
  }
};
using plan::Epilogue;
constexpr auto unimplemented = absl::StatusCode::kUnimplemented,
               invalid = absl::StatusCode::kInvalidArgument;

TEST_F(Beside, TakesWhatTheLibraryDoesNot) {
  auto why = [&](Epilogue epilogue, auto change) {
    return whyBeside(*blas, with(epilogue, change));
  };
  EXPECT_HAS(why(Epilogue::gelu, [](auto &r) { r.aux->strides[1] = 36; }),
             "expected dense rows a multiple of 8 elements apart");
  EXPECT_HAS(why(Epilogue::gelu, [](auto &r) { r.aux->address += 8; }),
             "from a multiple of 16 bytes on");
  EXPECT_HAS(why(Epilogue::gelu, [](auto &r) { r.aux->dtype = DType::f32; }),
             "expected the type of dst, bf16");
  EXPECT_HAS(
      why(Epilogue::gelu_grad, [](auto &r) { r.dst.strides = {512, 1, 16}; }),
      "expected dense rows beside a GELU");
  EXPECT_HAS(why(Epilogue::sum_lhs,
                 [](auto &r) {
                   r.aux->shape = {16};
                   r.aux->strides = {1};
                   r.aux->dtype = DType::f32;
                 }),
             "expected 16 dense sums of dst's type, bf16");
  auto bias = [&](auto change) {
    MatmulRequest request = problem.request;
    request.bias = DeviceView{aux.view.address, DType::bf16, {32}, {1}};
    change(request);
    return whyBeside(*blas, request);
  };
  EXPECT_HAS(bias([](auto &r) { r.bias->dtype = DType::f32; }),
             "bias is f32[32] with strides [1], expected the type of dst");
  EXPECT_HAS(bias([](auto &r) { r.dst.strides = {512, 1, 16}; }),
             "along the dense dim only");
  EXPECT_EQ(bias([](auto &) {}), "");
}

TEST_F(Beside, IsToldWithTheNameOfTheEpilogue) {
  NoEpilogues without;
  EXPECT_EQ(whyBeside(*blas, with(Epilogue::gelu, [](auto &) {})),
            "cuBLASLt has no algorithm with GELU_AUX");
}

TEST_F(Beside, WhatNeitherCanIsRefusedInTheWordsOfTheLibrary) {
  auto text = [&](Epilogue epilogue, absl::StatusCode code, auto change) {
    return refusal(*blas, with(epilogue, change), code);
  };
  EXPECT_HAS(
      text(Epilogue::gelu_grad, invalid, [](auto &r) { r.aux->shape[2] = 16; }),
      "expected shape [1, 16, 32]");
  EXPECT_HAS(text(Epilogue::sum_rhs, unimplemented,
                  [](auto &r) {
                    r.aux->shape = {16};
                    r.aux->strides = {1};
                  }),
             "expected 32 dense sums");
  ::setenv("MESHWORK_EMULATOR_BLAS_WITHOUT", "1,160", 1);
  std::string none = text(Epilogue::gelu, unimplemented, [](auto &) {});
  ::unsetenv("MESHWORK_EMULATOR_BLAS_WITHOUT");
  EXPECT_HAS(none, "GELU_AUX aux 32x16/32");
  EXPECT_HAS(none, "compiled with target.epilogues = \"never\"");
}

/// Far from zero GELU is 0 or x, and its slope 0 or 1, not a NaN.
TEST_F(Beside, GeluFarFromZero) {
  NoEpilogues without;
  const std::vector<float> far{-1e30f, -1e5f, -40, 0, 40, 1e5f, 1e30f, NAN};
  Problem one(on, {1, 1, 8, 1}); // 1 * far
  one.lhs.write(on, {1});
  Matrix inputs(on, DType::f32, 1, 1, 8, false, 0);
  auto run = [&](Epilogue epilogue) {
    MatmulRequest request = one.request;
    request.epilogue = epilogue;
    if (epilogue == Epilogue::gelu_grad)
      request.aux = inputs.view;
    auto product = blas->prepare(request);
    expectOk(product.status());
    expectOk((*product)->run(on.stream, /*adds=*/false));
    std::vector<float> results = one.dst.read(on, far.size());
    EXPECT_TRUE(std::isnan(results.back()));
    results.pop_back();
    return results;
  };
  one.rhs.write(on, far);
  EXPECT_EQ(run(Epilogue::gelu),
            (std::vector<float>{0, 0, 0, 0, 40, 1e5f, 1e30f}));
  one.rhs.write(on, std::vector<float>(far.size(), 1));
  inputs.write(on, far);
  EXPECT_EQ(run(Epilogue::gelu_grad),
            (std::vector<float>{0, 0, 0, 0.5, 1, 1, 1}));
}

/// An algorithm that the library proposes and then does not run.
TEST_F(Beside, LoadGoesOnToWhatRuns) {
  MatmulRequest request = with(Epilogue::gelu, [](auto &) {});
  auto product = blas->prepare(request);
  expectOk(product.status());
  NoEpilogues without;
  expectOk((*product)->load(on.stream, /*adds=*/false));
  EXPECT_EQ((*product)->whyBeside(),
            "cuBLASLt's algorithms with it do not run here");
}

} // namespace
} // namespace meshwork::runtime::cuda::test
