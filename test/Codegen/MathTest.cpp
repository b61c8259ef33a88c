// Functions of math against doubles, over the range where f32 has results.
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

constexpr const char *apply = R"(
#d = #transformer.dims<n>
!x = tensor<$Nxf32, #d>
func.func @f(%x: !x) -> !x {
  %r = transformer.fused rows <> cols #d ins(%x : !x) -> !x {
  ^bb0(%a: !x):
    %y = transformer.map ins(%a : !x) -> !x {
    ^bb0(%p: f32):
      %0 = math.$F %p : f32
      transformer.yield %0 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

struct Case {
  const char *name;
  double (*exact)(double);
  float low, high;
  bool logarithmic; // points spaced by ratio, both signs when low is negative
  double bound;
};

double rsqrt(double x) { return 1 / std::sqrt(x); }

std::vector<float> pointsOf(const Case &c, size_t count) {
  std::vector<float> points(count);
  for (size_t i = 0; i < count; ++i) {
    double t = static_cast<double>(i) / (count - 1);
    points[i] = c.logarithmic ? c.low * std::pow(double(c.high) / c.low, t)
                              : c.low + (double(c.high) - c.low) * t;
  }
  return points;
}

class MathTest : public testing::TestWithParam<Case> {};

TEST_P(MathTest, RelativeErrorIsSmall) {
  const Case &c = GetParam();
  constexpr size_t count = 400003;
  for (const std::string &arch : runnableArchs()) {
    Kernel kernel(fill(apply, {{"N", std::to_string(count)}, {"F", c.name}}),
                  arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    std::vector<float> x = pointsOf(c, count), y(count);
    kernel.run({x.data(), y.data()});
    double worst = 0, at = 0;
    for (size_t i = 0; i < count; ++i) {
      double exact = c.exact(x[i]);
      // Below the smallest normal number, flushing to zero is allowed.
      double error =
          std::abs(y[i] - exact) / std::max(std::abs(exact), 1.2e-38);
      if (!(error <= worst)) {
        worst = error;
        at = x[i];
      }
    }
    EXPECT_LE(worst, c.bound) << c.name << " at " << at << " on " << arch;
    printf("%s %s worst relative error %.3g at %.9g\n", arch.c_str(), c.name,
           worst, at);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Functions, MathTest,
    testing::Values(Case{"exp", std::exp, -87.3f, 88.37f, false, 3e-7},
                    Case{"exp", std::exp, -1e-3f, 1e-3f, false, 1.2e-7},
                    Case{"log", std::log, 1.2e-38f, 3.4e38f, true, 2e-7},
                    Case{"log", std::log, 0.5f, 2.0f, false, 3e-7},
                    Case{"tanh", std::tanh, -12.0f, 12.0f, false, 5e-7},
                    Case{"tanh", std::tanh, 1e-30f, 1.0f, true, 5e-7},
                    Case{"erf", std::erf, -5.0f, 5.0f, false, 5e-7},
                    Case{"erf", std::erf, 1e-30f, 1.0f, true, 5e-7},
                    Case{"sqrt", std::sqrt, 1.2e-38f, 3.4e38f, true, 1e-7},
                    Case{"rsqrt", rsqrt, 1.2e-38f, 3.4e38f, true, 2e-7}),
    [](const auto &info) {
      return info.param.name + std::to_string(info.index);
    });

TEST(MathLimits, InfinityAndNanGoThrough) {
  const float inf = INFINITY;
  for (const std::string &arch : runnableArchs())
    for (auto [name, exact] :
         {std::pair<const char *, double (*)(double)>{"exp", std::exp},
          {"log", std::log},
          {"tanh", std::tanh},
          {"erf", std::erf}}) {
      Kernel kernel(fill(apply, {{"N", "8"}, {"F", name}}), arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<float> x = {0.0f, inf,
                              -inf, NAN,
                              1000, -1000,
                              100,  std::bit_cast<float>(0x7f800001u)},
                         y(8);
      kernel.run({x.data(), y.data()});
      for (int i = 0; i < 8; ++i) {
        float expected = static_cast<float>(exact(x[i]));
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(y[i]))
              << name << " of " << x[i] << " is " << y[i];
        else if (std::isinf(expected) || expected == 0)
          EXPECT_EQ(y[i], expected) << name << " of " << x[i];
        else
          expectNear(y[i], expected, 1e-6, 1e-38, i);
      }
    }
}

} // namespace
