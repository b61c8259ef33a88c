// Products by cuBLASLt against loops in double precision.
//
// Tolerance: inputs lie in [-1, 1], so a sum of K products in f32 is off by at
// most K * K * 2^-24 in any order, and about K * 2^-24 in practice; 4 K * 2^-24
// is allowed. A bf16 result adds half its spacing, 2^-9 of a value that is at
// most K + 2, with bias and what was there.
#include "runtime/device/cuda/BlasLt.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/core/Bf16.h"
#include "test/Runtime/Float8.h"
#include "test/Runtime/cuda/TestDevice.h"
#include <cmath>
#include <cstdlib>
#include <random>

namespace meshwork::runtime::cuda::test {
namespace {
using plan::DType;

struct Case {
  int64_t b, m, n, k;
  DType in = DType::f32, out = DType::f32;
  bool lhsTransposed = false, rhsTransposed = false, dstTransposed = false;
  bool bias = false;
  int64_t padding = 0; // elements between stored rows
  uint64_t workspaceBytes = 65536;
  DType rhs = DType::i32; // as in
  DType typeOfRhs() const { return rhs == DType::i32 ? in : rhs; }
};
/// Of operands of 8 bits.
constexpr float scales[2] = {0.5f, 0.75f};

std::vector<float> randomValues(size_t count, DType type, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float &value : values) {
    value = distribution(generator);
    if (type == DType::bf16)
      value = fromBf16(toBf16(value));
    if (plan::isFloat8(type))
      value = fromFloat8(type, runtime::test::toFloat8(type, double(value)));
  }
  return values;
}

/// A [b, r, c] view whose rows, or columns, are dense, with its values.
struct Matrix {
  DeviceView view;
  size_t stored; // elements

  Matrix(TestDevice &on, DType type, int64_t b, int64_t r, int64_t c,
         bool transposed, int64_t padding) {
    int64_t ld = (transposed ? r : c) + padding;
    int64_t rows = transposed ? c : r;
    stored = static_cast<size_t>(b * rows * ld);
    view = {on.allocate(stored * 4),
            type,
            {b, r, c},
            {rows * ld, transposed ? 1 : ld, transposed ? ld : 1}};
  }

  size_t at(size_t element) const {
    int64_t i = static_cast<int64_t>(element);
    int64_t c = view.shape[2], r = view.shape[1];
    return static_cast<size_t>(i / (r * c) * view.strides[0] +
                               i / c % r * view.strides[1] +
                               i % c * view.strides[2]);
  }
  void write(TestDevice &on, const std::vector<float> &values) const {
    // NaN in the gaps: nothing may read them.
    std::vector<float> wide(stored, NAN);
    for (size_t i = 0; i < values.size(); ++i)
      wide[at(i)] = values[i];
    if (view.dtype == DType::f32)
      return on.write(view.address, wide);
    if (plan::isFloat8(view.dtype)) {
      std::vector<uint8_t> bytes;
      for (float value : wide)
        bytes.push_back(runtime::test::toFloat8(view.dtype, double(value)));
      return on.write(view.address, bytes);
    }
    std::vector<uint16_t> narrow;
    for (float value : wide)
      narrow.push_back(toBf16(value));
    on.write(view.address, narrow);
  }
  std::vector<float> read(TestDevice &on, size_t count) const {
    std::vector<float> wide;
    if (view.dtype == DType::f32)
      wide = on.read<float>(view.address, stored);
    else
      for (uint16_t bits : on.read<uint16_t>(view.address, stored))
        wide.push_back(fromBf16(bits));
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = wide[at(i)];
      wide[at(i)] = NAN;
    }
    for (float gap : wide)
      EXPECT_TRUE(std::isnan(gap)) << "wrote between rows";
    return values;
  }
};

struct Problem {
  Case c;
  Matrix lhs, rhs, dst;
  std::vector<float> lhsValues, rhsValues, biasValues, before;
  MatmulRequest request;

  Problem(TestDevice &on, const Case &c)
      : c(c), lhs(on, c.in, c.b, c.m, c.k, c.lhsTransposed, c.padding),
        rhs(on, c.typeOfRhs(), c.b, c.k, c.n, c.rhsTransposed, c.padding),
        dst(on, c.out, c.b, c.m, c.n, c.dstTransposed, c.padding),
        lhsValues(randomValues(count(c.b, c.m, c.k), c.in, 1)),
        rhsValues(randomValues(count(c.b, c.k, c.n), c.typeOfRhs(), 2)),
        biasValues(randomValues(count(1, 1, c.n), c.out, 3)),
        before(randomValues(count(c.b, c.m, c.n), c.out, 4)) {
    lhs.write(on, lhsValues);
    rhs.write(on, rhsValues);
    request = {lhs.view, rhs.view, dst.view, {}, 0, c.workspaceBytes, "h.0"};
    request.workspace = on.allocate(c.workspaceBytes + 1);
    if (plan::isFloat8(c.in)) {
      request.lhsScale = on.allocate(2 * sizeof(float));
      request.rhsScale = request.lhsScale + sizeof(float);
      on.write(request.lhsScale, std::vector<float>{scales[0], scales[1]});
    }
    if (!c.bias)
      return;
    // Less aligned than dst, as one in the middle of a buffer.
    constexpr int64_t before = 16;
    Matrix bias(on, c.out, 1, 1, c.n + before, false, 0);
    std::vector<float> values(before, NAN);
    values.insert(values.end(), biasValues.begin(), biasValues.end());
    bias.write(on, values);
    DevicePtr width = c.out == DType::f32 ? 4 : 2;
    request.bias =
        DeviceView{bias.view.address + before * width, c.out, {c.n}, {1}};
  }
  static size_t count(int64_t b, int64_t r, int64_t c) {
    return static_cast<size_t>(b * r * c);
  }

  double expected(size_t element, bool adds) const {
    size_t m = size_t(c.m), n = size_t(c.n), k = size_t(c.k);
    size_t batch = element / (m * n), row = element / n % m,
           column = element % n;
    double sum = 0;
    for (size_t i = 0; i < k; ++i)
      sum += double(lhsValues[(batch * m + row) * k + i]) *
             rhsValues[(batch * k + i) * n + column];
    if (plan::isFloat8(c.in))
      sum *= scales[0] * scales[1];
    return sum + (c.bias ? biasValues[column] : 0) +
           (adds ? before[element] : 0);
  }
};

class Products : public ::testing::TestWithParam<Case> {};

TEST_P(Products, AreThoseOfTheLoops) {
  TestDevice on;
  Problem problem(on, GetParam());
  const Case &c = problem.c;
  auto blas = BlasLt::create(*on.driver, on.device);
  expectOk(blas.status());
  auto product = (*blas)->prepare(problem.request);
  expectOk(product.status());
  double rounding = c.out == DType::bf16 ? std::ldexp(double(c.k) + 2, -9) : 0;
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

/// In all types and transpositions: `first` as it is, `second` with gaps, and
/// that with a bias where the library has one.
std::vector<Case> layoutsOf(const Case &first, const Case &second) {
  std::vector<Case> cases;
  for (auto [in, out] :
       {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16),
        std::pair(DType::bf16, DType::f32)})
    for (int bits = 0; bits < 8; ++bits) {
      auto add = [&, in = in, out = out](const Case &sizes, int64_t padding,
                                         bool bias) {
        Case c{sizes.b, sizes.m,        sizes.n,        sizes.k,       in,
               out,     bool(bits & 1), bool(bits & 2), bool(bits & 4)};
        c.padding = padding;
        c.bias = bias;
        if (!bias || !c.dstTransposed)
          cases.push_back(c);
      };
      add(first, 0, false);
      add(second, 5, false);
      add(second, 5, true);
    }
  return cases;
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
        c.bias = out == DType::bf16 && !transposed;
        cases.push_back(c);
      }
  cases.push_back({1, 1, 5, 8});
  cases.push_back({2, 9, 1, 4, DType::bf16, DType::bf16});
  cases.push_back({1, 600, 530, 3, DType::bf16, DType::f32});
  cases.push_back({1, 6, 5, 9, DType::f32, DType::f32, true});
  cases.back().workspaceBytes = 0;
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, Products, ::testing::ValuesIn(allCases()));

std::string refusal(const BlasLt &blas, const MatmulRequest &request,
                    absl::StatusCode code) {
  auto product = blas.prepare(request);
  EXPECT_FALSE(product.ok());
  EXPECT_EQ(product.status().code(), code);
  return std::string(product.status().message());
}

#define EXPECT_HAS(text, part)                                                 \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(BlasLt, RefusesWhatItCannotMultiply) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver, on.device);
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
  DeviceView bias{problem.request.workspace, DType::f32, {8}, {1}};
  text = refusal(**blas, with([&](auto &r) { r.bias = bias; }), unimplemented);
  EXPECT_HAS(text, "bias is f32[8] with strides [1], expected the type of dst");
  bias = {problem.request.workspace, DType::bf16, {4}, {1}};
  text = refusal(**blas, with([&](auto &r) { r.bias = bias; }), invalid);
  EXPECT_HAS(text, "expected 8 dense elements");
  text = refusal(**blas, with([&](auto &r) {
    bias.shape = {8};
    r.bias = bias;
    r.dst.strides = {32, 1, 4};
  }),
                 unimplemented);
  EXPECT_HAS(text, "along the dense dim only");
}

TEST(BlasLt, RefusesWhatTensorCoresDoNotTakeOf8Bits) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver, on.device);
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
  other = good;
  other.out = DType::f32, other.bias = true;
  EXPECT_HAS(textOf(other, nothing), "dst is f32 and has a bias");
  EXPECT_HAS(textOf(
                 good, [](auto &r) { r.rhsScale = 0; },
                 absl::StatusCode::kInvalidArgument),
             "have no scales");
  EXPECT_HAS(textOf(good, [](auto &r) { r.lhs.address += 8; }),
             "expected all rows at multiples of 16 bytes");
}

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
  std::unique_ptr<BlasLt> blas = *BlasLt::create(*on.driver, on.device);
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

/// What the library has for an epilogue; what it lacks is refused, below.
std::vector<Case> epilogueCases(bool (*has)(const Case &)) {
  std::vector<Case> cases = layoutsOf({1, 12, 32, 19}, {1, 600, 21, 19});
  std::erase_if(cases, [&](const Case &c) { return !has(c); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, GeluEpilogue,
                         ::testing::ValuesIn(epilogueCases([](const Case &c) {
                           return !c.dstTransposed;
                         })));
INSTANTIATE_TEST_SUITE_P(All, GeluGradientEpilogue,
                         ::testing::ValuesIn(epilogueCases([](const Case &c) {
                           return !c.dstTransposed && !c.bias;
                         })));
INSTANTIATE_TEST_SUITE_P(All, SumEpilogue,
                         ::testing::ValuesIn(epilogueCases([](const Case &c) {
                           return !c.bias;
                         })));

TEST(BlasLt, RefusesEpiloguesThatTheLibraryLacks) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver, on.device);
  expectOk(blas.status());
  Problem problem(on, {1, 16, 32, 16, DType::bf16, DType::bf16});
  Matrix aux(on, DType::bf16, 1, 16, 32, false, 0);
  constexpr auto unimplemented = absl::StatusCode::kUnimplemented,
                 invalid = absl::StatusCode::kInvalidArgument;
  auto textOf = [&](plan::Epilogue epilogue, auto change,
                    absl::StatusCode code = unimplemented) {
    MatmulRequest request = problem.request;
    request.epilogue = epilogue;
    request.aux = aux.view;
    change(request);
    return refusal(**blas, request, code);
  };
  using plan::Epilogue;
  EXPECT_HAS(textOf(Epilogue::gelu, [](auto &r) { r.aux->strides[1] = 36; }),
             "expected dense rows a multiple of 8 elements apart");
  EXPECT_HAS(textOf(Epilogue::gelu, [](auto &r) { r.aux->address += 8; }),
             "from a multiple of 16 bytes on");
  EXPECT_HAS(textOf(Epilogue::gelu, [](auto &r) { r.aux->dtype = DType::f32; }),
             "expected the type of dst, bf16");
  EXPECT_HAS(
      textOf(
          Epilogue::gelu_grad, [](auto &r) { r.aux->shape[2] = 16; }, invalid),
      "expected shape [1, 16, 32]");
  EXPECT_HAS(textOf(Epilogue::gelu_grad,
                    [](auto &r) { r.dst.strides = {512, 1, 16}; }),
             "expected dense rows beside a GELU");
  auto sums = [](auto &r) {
    r.aux->shape = {16};
    r.aux->strides = {1};
  };
  EXPECT_HAS(textOf(Epilogue::sum_rhs, sums), "expected 32 dense sums");
  EXPECT_HAS(textOf(Epilogue::sum_lhs,
                    [&](auto &r) {
                      sums(r);
                      r.aux->dtype = DType::f32;
                    }),
             "expected 16 dense sums of dst's type, bf16");
  // What the heuristics have nothing for.
  ::setenv("MESHWORK_EMULATOR_BLAS_WITHOUT", "4,160", 1);
  std::string text = textOf(Epilogue::gelu, [](auto &) {});
  ::unsetenv("MESHWORK_EMULATOR_BLAS_WITHOUT");
  EXPECT_HAS(text, "GELU_AUX aux 32x16/32");
  EXPECT_HAS(text, "compiled with target.epilogues = \"never\"");
}

/// What runs is what was fastest: a split sum has other bits than a whole one.
TEST(BlasLt, KeepsTheFastest) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver, on.device);
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

TEST(BlasLt, NamesTheMatmulThatFails) {
  TestDevice on;
  auto blas = BlasLt::create(*on.driver, on.device);
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
