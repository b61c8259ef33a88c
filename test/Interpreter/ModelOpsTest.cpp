// Model ops as what they decompose into: values against the formulas of their
// papers written out in plain C++, gradients against finite differences.
#include "Harness.h"

#include <cmath>
#include <numbers>

using namespace meshwork::interpreter;

namespace {

// Constants in bodies are f32, so a formula in double agrees to about 2^-24.
constexpr double tolerance = 3e-7;

struct Unary {
  const char *name;
  double (*formula)(double);
};
void PrintTo(const Unary &unary, std::ostream *os) { *os << unary.name; }
class Activations : public testing::TestWithParam<Unary> {};
TEST_P(Activations, MatchFormulaAndDifferences) {
  auto [name, formula] = GetParam();
  Program program(std::string(R"(
    func.func @f(%x: tensor<3x8xf32, #se>) -> tensor<3x8xf32, #se> {
      %0 = transformer.activate )") +
                  name + R"( %x : tensor<3x8xf32, #se>
      return %0 : tensor<3x8xf32, #se>
    })");
  Tensor x = randomTensor({3, 8}, 1, -4, 4), y = program.run({x})[0],
         expected = x;
  for (int64_t i = 0; i < x.size(); ++i)
    expected[i] = formula(x[i]);
  EXPECT_LT(relativeError(y, expected), tolerance);
  checkGradient(program, {x});
}
double geluTanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / std::numbers::pi) *
                        (x + 0.044715 * x * x * x)));
}
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu(double x) { return x > 0 ? x : 0; }
INSTANTIATE_TEST_SUITE_P(
    Functions, Activations,
    testing::Values(Unary{"gelu_tanh", geluTanh}, Unary{"gelu", gelu},
                    Unary{"silu", silu}, Unary{"relu", relu},
                    Unary{"sigmoid", sigmoid}),
    [](const auto &info) { return std::string(info.param.name); });

struct Binary {
  const char *name;
  double (*formula)(double, double);
};
void PrintTo(const Binary &binary, std::ostream *os) { *os << binary.name; }
class Binaries : public testing::TestWithParam<Binary> {};
TEST_P(Binaries, BroadcastByName) {
  auto [name, formula] = GetParam();
  Program program(
      std::string(R"(
    func.func @f(%a: tensor<3xf32, #s>, %b: tensor<4x2xf32, #transformer.dims<embed, batch>>) -> tensor<2x3x4xf32, #bse> {
      %0 = transformer.)") +
      name +
      R"( %a, %b : tensor<3xf32, #s>, tensor<4x2xf32, #transformer.dims<embed, batch>>
          -> tensor<2x3x4xf32, #bse>
      return %0 : tensor<2x3x4xf32, #bse>
    })");
  Tensor a = randomTensor({3}, 1), b = randomTensor({4, 2}, 2),
         y = program.run({a, b})[0];
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(y[(i * 3 + j) * 4 + k], formula(a[j], b[k * 2 + i]));
  checkGradient(program, {a, b});
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, Binaries,
    testing::Values(Binary{"add", [](double x, double y) { return x + y; }},
                    Binary{"sub", [](double x, double y) { return x - y; }},
                    Binary{"mul", [](double x, double y) { return x * y; }}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(ModelOps, LayerNorm) {
  Program program(R"(
    func.func @f(%x: tensor<2x3x8xf32, #bse>, %w: tensor<8xf32, #e>, %b: tensor<8xf32, #e>) -> tensor<2x3x8xf32, #bse> {
      %0 = transformer.layer_norm %x, %w, %b epsilon 1.0e-2 : tensor<2x3x8xf32, #bse>, tensor<8xf32, #e>
      return %0 : tensor<2x3x8xf32, #bse>
    })");
  Tensor x = randomTensor({2, 3, 8}, 1), w = randomTensor({8}, 2),
         b = randomTensor({8}, 3), expected = x;
  for (int64_t row = 0; row < 6; ++row) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < 8; ++i)
      mean += x[row * 8 + i] / 8;
    for (int64_t i = 0; i < 8; ++i)
      variance += std::pow(x[row * 8 + i] - mean, 2) / 8;
    for (int64_t i = 0; i < 8; ++i)
      expected[row * 8 + i] =
          (x[row * 8 + i] - mean) / std::sqrt(variance + 1e-2) * w[i] + b[i];
  }
  EXPECT_LT(relativeError(program.run({x, w, b})[0], expected), tolerance);
  checkGradient(program, {x, w, b});
}

/// Over two dims at once, as for the norm of a whole `heads x head_dim` row.
TEST(ModelOps, RmsNorm) {
  Program program(R"(
    func.func @f(%x: tensor<3x2x4xf32, #transformer.dims<sequence, heads, head_dim>>,
                 %w: tensor<2x4xf32, #transformer.dims<heads, head_dim>>)
        -> tensor<3x2x4xf32, #transformer.dims<sequence, heads, head_dim>> {
      %0 = transformer.rms_norm %x, %w epsilon 1.0e-2
          : tensor<3x2x4xf32, #transformer.dims<sequence, heads, head_dim>>, tensor<2x4xf32, #transformer.dims<heads, head_dim>>
      return %0 : tensor<3x2x4xf32, #transformer.dims<sequence, heads, head_dim>>
    })");
  Tensor x = randomTensor({3, 2, 4}, 1), w = randomTensor({2, 4}, 2),
         expected = x;
  for (int64_t row = 0; row < 3; ++row) {
    double square = 0;
    for (int64_t i = 0; i < 8; ++i)
      square += x[row * 8 + i] * x[row * 8 + i] / 8;
    for (int64_t i = 0; i < 8; ++i)
      expected[row * 8 + i] = x[row * 8 + i] / std::sqrt(square + 1e-2) * w[i];
  }
  EXPECT_LT(relativeError(program.run({x, w})[0], expected), tolerance);
  checkGradient(program, {x, w});
}

TEST(ModelOps, Standardize) {
  Program program(R"(
    func.func @f(%x: tensor<3x4xf32, #transformer.dims<sequence, embed>>) -> tensor<3x4xf32, #transformer.dims<sequence, embed>> {
      %0 = transformer.standardize %x epsilon 1.0e-2 : tensor<3x4xf32, #transformer.dims<sequence, embed>>
      return %0 : tensor<3x4xf32, #transformer.dims<sequence, embed>>
    })");
  Tensor x = randomTensor({3, 4}, 1), expected = x;
  for (int64_t row = 0; row < 3; ++row) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < 4; ++i) {
      mean += x[row * 4 + i] / 4;
      square += x[row * 4 + i] * x[row * 4 + i] / 4;
    }
    double scale = 1 / std::sqrt(square - mean * mean + 1e-2);
    for (int64_t i = 0; i < 4; ++i)
      expected[row * 4 + i] = (x[row * 4 + i] - mean) * scale;
  }
  EXPECT_LT(relativeError(program.run({x})[0], expected), tolerance);
  checkGradient(program, {x});
}

/// Pairs (d, d + 2) turn; elements 4 and 5 stay.
TEST(ModelOps, RopeOfAPart) {
  Program program(R"(
    func.func @f(%x: tensor<2x3x2x6xf32, #bshd>) -> tensor<2x3x2x6xf32, #bshd> {
      %0 = transformer.rope %x inverse_frequencies [1.0, 0.25] scale 1.5 : tensor<2x3x2x6xf32, #bshd>
      return %0 : tensor<2x3x2x6xf32, #bshd>
    })");
  Tensor x = randomTensor({2, 3, 2, 6}, 1), expected = x;
  for (int64_t row = 0; row < 12; ++row)
    for (int64_t d = 0; d < 2; ++d) {
      double angle = static_cast<double>(row / 2 % 3) * (d == 0 ? 1.0 : 0.25);
      double first = x[row * 6 + d], second = x[row * 6 + d + 2];
      expected[row * 6 + d] =
          1.5 * (first * std::cos(angle) - second * std::sin(angle));
      expected[row * 6 + d + 2] =
          1.5 * (second * std::cos(angle) + first * std::sin(angle));
    }
  EXPECT_LT(relativeError(program.run({x})[0], expected), tolerance);
  checkGradient(program, {x});
}

/// Pairs (d, d + 2) turn by position * frequency[d].
TEST(ModelOps, Rope) {
  Program program(R"(
    func.func @f(%x: tensor<2x3x2x4xf32, #bshd>) -> tensor<2x3x2x4xf32, #bshd> {
      %0 = transformer.rope %x inverse_frequencies [1.0, 0.25] scale 1.5 : tensor<2x3x2x4xf32, #bshd>
      return %0 : tensor<2x3x2x4xf32, #bshd>
    })");
  Tensor x = randomTensor({2, 3, 2, 4}, 1), expected = x;
  for (int64_t row = 0; row < 12; ++row)
    for (int64_t d = 0; d < 2; ++d) {
      double angle = static_cast<double>(row / 2 % 3) * (d == 0 ? 1.0 : 0.25);
      double first = x[row * 4 + d], second = x[row * 4 + d + 2];
      expected[row * 4 + d] =
          1.5 * (first * std::cos(angle) - second * std::sin(angle));
      expected[row * 4 + d + 2] =
          1.5 * (second * std::cos(angle) + first * std::sin(angle));
    }
  EXPECT_LT(relativeError(program.run({x})[0], expected), tolerance);
  checkGradient(program, {x});
}

TEST(ModelOps, Dropout) {
  Program program(R"(
    func.func @f(%x: tensor<8x16x8xf32, #bse>) -> tensor<8x16x8xf32, #bse> {
      %0 = transformer.dropout %x "h.0.drop" rate 2.5e-1 : tensor<8x16x8xf32, #bse>
      return %0 : tensor<8x16x8xf32, #bse>
    })");
  using meshwork::transformer::StepInput;
  program.interpreter.inputs = {
      {StepInput::seed, 1}, {StepInput::step, 2}, {StepInput::first_sample, 0}};
  Tensor x = randomTensor({8, 16, 8}, 1, 0.5, 1), y = program.run({x})[0];
  int64_t kept = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (y[i] != 0)
      EXPECT_DOUBLE_EQ(y[i], x[i] * static_cast<float>(1 / 0.75));
    kept += y[i] != 0;
  }
  // 768 of 1024 expected, standard deviation 14: five of them.
  EXPECT_NEAR(kept, 768, 70);
  // Samples 4 to 7 drop the same elements when they are another rank's.
  program.interpreter.inputs[StepInput::first_sample] = 4;
  Tensor shifted = program.run({x})[0];
  for (int64_t i = 0; i < 4 * 128; ++i)
    EXPECT_EQ(shifted[i] != 0, y[4 * 128 + i] != 0);
  program.interpreter.inputs[StepInput::step] = 3;
  EXPECT_GT(relativeError(program.run({x})[0], shifted), 0.1)
      << "another step drops others";
}

TEST(ModelOps, DropoutOfRateZeroIsNothing) {
  Program program(R"(
    func.func @f(%x: tensor<2x3xf32, #bs>) -> tensor<2x3xf32, #bs> {
      %0 = transformer.dropout %x "d" rate 0.0 : tensor<2x3xf32, #bs>
      return %0 : tensor<2x3xf32, #bs>
    })");
  Tensor x = randomTensor({2, 3}, 1);
  EXPECT_EQ(program.run({x})[0].getElements(), x.getElements());
}

} // namespace
