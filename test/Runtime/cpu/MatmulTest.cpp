// Products against loops in double precision.
//
// Tolerance: inputs lie in [-1, 1]. So each sum of K products with unit
// roundoff u (2^-24) is off by at most K * K * u in any order. In practice it
// is about sqrt(K) * u * sqrt(K); the tests allow 4 * K * u. A bf16 result adds
// half its spacing, 2^-9 relative to a value of at most K.
#include <cmath>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"

namespace meshwork::runtime::test {
namespace {

struct Case {
  int64_t b, m, n, k;
  DType in = DType::f32, out = DType::f32;
  bool lhsTransposed = false, rhsTransposed = false, dstTransposed = false;
  bool bias = false;
  int64_t padding = 0;    // extra elements between stored rows
  DType rhs = DType::i32; // as in
  DType typeOfRhs() const { return rhs == DType::i32 ? in : rhs; }
  DType typeOfBias() const { return plan::isFloat8(in) ? DType::bf16 : in; }
};

/// A [b, r, c] view whose rows, or columns, are dense.
uint32_t addMatrix(TestProgram &program, DType dtype, int64_t b, int64_t r,
                   int64_t c, bool transposed, int64_t padding) {
  int64_t ld = (transposed ? r : c) + padding;
  int64_t rows = transposed ? c : r;
  uint32_t buffer = program.addBuffer(dtype, b * rows * ld);
  Dims strides = {rows * ld, transposed ? 1 : ld, transposed ? ld : 1};
  return program.addView(buffer, dtype, {b, r, c}, strides);
}

struct Problem {
  static constexpr double scales[2] = {0.5, 0.75};
  TestProgram program;
  plan::MatmulT op;
  Values lhs, rhs, bias, before;
  Case shape;

  explicit Problem(const Case &c)
      : lhs(randomValues(c.b * c.m * c.k, c.in, 1)),
        rhs(randomValues(c.b * c.k * c.n, c.typeOfRhs(), 2)),
        bias(randomValues(c.n, c.typeOfBias(), 3)),
        before(randomValues(c.b * c.m * c.n, c.out, 4)), shape(c) {
    op.lhs =
        addMatrix(program, c.in, c.b, c.m, c.k, c.lhsTransposed, c.padding);
    op.rhs = addMatrix(program, c.typeOfRhs(), c.b, c.k, c.n, c.rhsTransposed,
                       c.padding);
    op.dst =
        addMatrix(program, c.out, c.b, c.m, c.n, c.dstTransposed, c.padding);
    program.write(op.lhs, lhs);
    program.write(op.rhs, rhs);
    if (c.bias)
      op.bias = program.add(c.typeOfBias(), {c.n}, bias);
    if (!plan::isFloat8(c.in))
      return;
    op.lhs_scale = program.add(DType::f32, {}, {scales[0]});
    op.rhs_scale = program.add(DType::f32, {}, {scales[1]});
  }

  /// Product and bias; along rows, since these loops take most of a test.
  Values product() const {
    const auto &[b, m, n, k] = std::tie(shape.b, shape.m, shape.n, shape.k);
    Values result(b * m * n);
    for (int64_t row = 0; row < b * m; ++row) {
      double *sums = &result[row * n];
      for (int64_t j = 0; j < k; ++j) {
        const double *from = &rhs[(row / m * k + j) * n];
        for (int64_t column = 0; column < n; ++column)
          sums[column] += lhs[row * k + j] * from[column];
      }
      for (int64_t column = 0; column < n; ++column) {
        if (plan::isFloat8(shape.in))
          sums[column] *= scales[0] * scales[1];
        sums[column] += shape.bias ? bias[column] : 0;
      }
    }
    return result;
  }

  double tolerance() const {
    double f32 = 4 * shape.k * 0x1p-24;
    return shape.out == DType::bf16 ? f32 + (shape.k + 2) * 0x1p-9 : f32;
  }
};

void expectProduct(const Case &shape) {
  Values product = Problem(shape).product();
  for (plan::Accumulate mode : {plan::Accumulate::no, plan::Accumulate::yes,
                                plan::Accumulate::after_first})
    for (uint32_t microbatch : {0u, 1u}) {
      Problem problem(shape);
      problem.op.accumulate = mode;
      bool accumulated =
          mode == plan::Accumulate::yes ||
          (mode == plan::Accumulate::after_first && microbatch > 0);
      if (accumulated) // Otherwise NaN: it must not be read.
        problem.program.write(problem.op.dst, problem.before);
      absl::Status status = problem.program.run(
          problem.op, {.threads = 2, .microbatch = microbatch});
      ASSERT_TRUE(status.ok()) << status;
      Values expected = product;
      for (size_t i = 0; accumulated && i < expected.size(); ++i)
        expected[i] += problem.before[i];
      EXPECT_LE(maxDifference(problem.program.read(problem.op.dst), expected),
                problem.tolerance())
          << "accumulate " << static_cast<int>(mode) << ", microbatch "
          << microbatch;
    }
}

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

TEST(Matmul, GeluAndItsDerivativeOverTheWholeRange) {
  Values x = {0};
  for (int exponent = -125; exponent < 127; ++exponent)
    for (double mantissa : {1.0, 1.3125, -1.0, -1.3125, 1.75, -1.75})
      x.push_back(std::ldexp(mantissa, exponent));
  auto count = static_cast<int64_t>(x.size());
  for (bool isGradient : {false, true}) {
    TestProgram program;
    plan::MatmulT op;
    op.epilogue = isGradient ? plan::Epilogue::gelu_grad : plan::Epilogue::gelu;
    op.lhs = program.add(DType::f32, {1, count, 1},
                         isGradient ? Values(x.size(), 1) : x);
    op.rhs = program.add(DType::f32, {1, 1, 1}, {1});
    op.dst = program.add(DType::f32, {1, count, 1});
    op.aux = isGradient ? program.add(DType::f32, {1, count, 1}, x)
                        : program.add(DType::f32, {1, count, 1});
    absl::Status status = program.run(op);
    ASSERT_TRUE(status.ok()) << status;
    Values found = program.read(op.dst);
    for (size_t i = 0; i < x.size(); ++i) {
      double scale = 2 * std::sqrt(2 / M_PI), cube = 0.044715;
      double u = scale * (x[i] + cube * x[i] * x[i] * x[i]);
      double up = sigmoid(u), bend = up * sigmoid(-u);
      double exact = x[i] * up;
      if (isGradient)
        exact = up + (bend == 0
                          ? 0
                          : x[i] * bend * scale * (1 + 3 * cube * x[i] * x[i]));
      // 1 + tanh cancels where tanh is not -1 yet.
      double near = std::abs(x[i]) < 16 ? 1 + x[i] * x[i] : 0;
      EXPECT_LE(std::abs(found[i] - exact),
                4e-7 * (std::abs(exact) + near) + 1e-38)
          << (isGradient ? "slope" : "value") << " at " << x[i];
    }
  }
}

TEST(Matmul, OddSizes) {
  for (int64_t m : {1, 5, 67})
    for (int64_t n : {1, 7, 70})
      for (int64_t k : {1, 3, 65})
        expectProduct({.b = 1, .m = m, .n = n, .k = k});
}

TEST(Matmul, EveryLayout) {
  for (int layout = 0; layout < 8; ++layout)
    for (DType dtype : {DType::f32, DType::bf16})
      expectProduct({.b = 1,
                     .m = 33,
                     .n = 50,
                     .k = 37,
                     .in = dtype,
                     .out = dtype,
                     .lhsTransposed = (layout & 1) != 0,
                     .rhsTransposed = (layout & 2) != 0,
                     .dstTransposed = (layout & 4) != 0,
                     .padding = 3});
}

TEST(Matmul, BatchesWithTransposes) {
  for (DType dtype : {DType::f32, DType::bf16})
    expectProduct({.b = 5,
                   .m = 19,
                   .n = 21,
                   .k = 33,
                   .in = dtype,
                   .rhsTransposed = true,
                   .padding = 1});
}

TEST(Matmul, Bias) {
  for (DType in : {DType::f32, DType::bf16})
    for (DType out : {DType::f32, in})
      expectProduct({.b = 1,
                     .m = 40,
                     .n = 130,
                     .k = 64,
                     .in = in,
                     .out = out,
                     .bias = true});
}

TEST(Matmul, SeveralBlocksWithLastOnesSmaller) {
  for (DType in : {DType::f32, DType::bf16})
    for (bool transposed : {false, true})
      expectProduct({.b = 1,
                     .m = 1041,
                     .n = 1000,
                     .k = 40,
                     .in = in,
                     .out = in,
                     .lhsTransposed = transposed,
                     .rhsTransposed = transposed,
                     .bias = true});
}

TEST(Matmul, DeepSums) {
  for (DType in : {DType::f32, DType::bf16})
    expectProduct({.b = 1, .m = 20, .n = 70, .k = 3001, .in = in});
}

TEST(Matmul, SeveralPanelsOfSeveralSlices) {
  for (DType in : {DType::f32, DType::bf16})
    for (DType out : {DType::f32, in})
      for (bool transposed : {false, true})
        expectProduct({.b = 1,
                       .m = 531,
                       .n = 395,
                       .k = 1601,
                       .in = in,
                       .out = out,
                       .lhsTransposed = transposed,
                       .rhsTransposed = !transposed,
                       .bias = true,
                       .padding = 1});
}

void expectSameBits(const Case &shape) {
  std::vector<std::byte> first;
  for (int threads : {1, 2, 3, 5}) {
    Problem problem(shape);
    ASSERT_TRUE(problem.program.run(problem.op, {.threads = threads}).ok());
    if (first.empty())
      first = problem.program.bytes();
    EXPECT_TRUE(first == problem.program.bytes()) << threads << " threads";
  }
}

TEST(Matmul, BitsDoNotDependOnThreads) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    expectSameBits({.b = 1,
                    .m = 1100,
                    .n = 300,
                    .k = 257,
                    .in = dtype,
                    .out = dtype,
                    .lhsTransposed = true});
    expectSameBits({.b = 3,
                    .m = 131,
                    .n = 251,
                    .k = 1999,
                    .in = dtype,
                    .out = dtype,
                    .rhsTransposed = true});
  }
}

TEST(Matmul, NumbersOf8BitsAndTheirScales) {
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2;
  for (auto [lhs, rhs] : {std::pair(e4m3, e4m3), {e4m3, e5m2}, {e5m2, e4m3}})
    for (DType out : {DType::f32, DType::bf16})
      for (bool transposed : {false, true})
        expectProduct({.b = 1,
                       .m = 48,
                       .n = 80,
                       .k = 272,
                       .in = lhs,
                       .out = out,
                       .rhsTransposed = true,
                       .dstTransposed = transposed,
                       .bias = !transposed,
                       .padding = 16,
                       .rhs = rhs});
  expectSameBits({.b = 1,
                  .m = 1100,
                  .n = 300,
                  .k = 257,
                  .in = e4m3,
                  .out = DType::bf16,
                  .rhsTransposed = true,
                  .rhs = e5m2});
}

TEST(Matmul, RefusesWhatItCannotMultiply) {
  auto messageOf = [](auto change) {
    Problem problem({.b = 1, .m = 4, .n = 6, .k = 8});
    change(problem);
    return std::string(problem.program.run(problem.op).message());
  };
  EXPECT_EQ(messageOf([](Problem &p) {
              p.op.lhs = p.program.add(DType::bf16, {1, 4, 8});
            }),
            "instruction \"under.test\" (Matmul): multiplies bf16 by f32 into "
            "f32, expected f32 by f32 into f32, or bf16 by bf16, or e4m3 or "
            "e5m2 by e4m3 or e5m2, into f32 or bf16");
  EXPECT_EQ(messageOf([](Problem &p) {
              p.op.rhs = p.program.add(DType::f32, {1, 9, 6});
            }),
            "instruction \"under.test\" (Matmul): rhs is f32[1, 9, 6] with "
            "strides [54, 6, 1], expected shape [1, 8, 6]");
  EXPECT_EQ(messageOf([](Problem &p) {
              uint32_t buffer = p.program.addBuffer(DType::f32, 100);
              p.op.lhs =
                  p.program.addView(buffer, DType::f32, {1, 4, 8}, {64, 16, 2});
            }),
            "instruction \"under.test\" (Matmul): lhs is f32[1, 4, 8] with "
            "strides [64, 16, 2], expected stride 1 in one of the two inner "
            "dims and the other stride no smaller than that dim");
  EXPECT_EQ(
      messageOf([](Problem &p) { p.op.bias = p.program.add(DType::f32, {5}); }),
      "instruction \"under.test\" (Matmul): bias is f32[5] with strides "
      "[1], expected 6 elements");
}

} // namespace
} // namespace meshwork::runtime::test
