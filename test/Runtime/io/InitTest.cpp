#include "runtime/io/Init.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "test/Runtime/io/Philox.h"

namespace meshwork::runtime {
namespace {

/// Owns the bytes of one parameter.
class Rule {
public:
  Rule(const char *name, plan::InitKind kind, float a, float b) : name(name) {
    plan::ParameterT parameter;
    parameter.init = kind;
    parameter.init_a = a;
    parameter.init_b = b;
    builder.Finish(plan::Parameter::Pack(builder, &parameter));
  }
  std::vector<float> values(size_t count, uint64_t seed,
                            uint64_t first = 0) const {
    std::vector<float> out(count, NAN);
    initialize(
        *flatbuffers::GetRoot<plan::Parameter>(builder.GetBufferPointer()),
        {seed, hashOfName(name)}, absl::MakeSpan(out), first);
    return out;
  }

private:
  std::string name;
  flatbuffers::FlatBufferBuilder builder;
};

const Rule normal("h.0.attn.weight", plan::InitKind::normal, 0.5f, 2.0f);

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};
Moments momentsOf(const std::vector<float> &values) {
  Moments m;
  double n = static_cast<double>(values.size());
  for (float v : values)
    m.mean += v / n;
  for (float v : values)
    m.variance += (v - m.mean) * (v - m.mean) / n;
  double deviation = std::sqrt(m.variance);
  for (float v : values) {
    double z = (v - m.mean) / deviation;
    m.skew += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
  }
  return m;
}

// Each bound is five standard errors of the moment at n = 2^20.
TEST(Init, NormalHasTheMomentsOfANormal) {
  double n = 1 << 20;
  std::vector<float> values = normal.values(1 << 20, 7);
  Moments m = momentsOf(values);
  EXPECT_NEAR(m.mean, 0.5, 5 * 2 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 4, 5 * 4 * std::sqrt(2 / n));
  EXPECT_NEAR(m.skew, 0, 5 * std::sqrt(6 / n));
  EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24 / n));
}

// Kolmogorov and Smirnov: sqrt(n) times the largest distance to the
// distribution is above 1.95 once in a thousand; the seed is fixed.
TEST(Init, NormalFollowsTheDistributionFunction) {
  std::vector<float> values = normal.values(100000, 3);
  std::sort(values.begin(), values.end());
  double n = static_cast<double>(values.size()), distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double z = (values[i] - 0.5) / 2;
    double expected = 0.5 * std::erfc(-z / std::sqrt(2));
    distance =
        std::max({distance, std::abs(expected - static_cast<double>(i) / n),
                  std::abs(expected - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);
}

TEST(Init, NeighboursDoNotCorrelate) {
  std::vector<float> v = normal.values(1 << 20, 11);
  for (size_t lag = 1; lag <= 8; ++lag) {
    double sum = 0;
    for (size_t i = lag; i < v.size(); ++i)
      sum += (v[i] - 0.5) * (v[i - lag] - 0.5) / 4;
    EXPECT_LT(std::abs(sum) / std::sqrt(v.size()), 5) << lag;
  }
}

TEST(Init, UniformStaysInItsRangeAndFillsIt) {
  Rule rule("w", plan::InitKind::uniform, -1, 3);
  std::vector<float> values = rule.values(1 << 20, 1);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -1);
  EXPECT_LE(*high, 3);
  Moments m = momentsOf(values);
  double n = 1 << 20;
  EXPECT_NEAR(m.mean, 1, 5 * std::sqrt(16.0 / 12 / n));
  EXPECT_NEAR(m.variance, 16.0 / 12, 5 * 16 * std::sqrt(1 / 180.0 / n));
  EXPECT_LT(*low, -1 + 1e-4);
  EXPECT_GT(*high, 3 - 1e-4);
}

TEST(Init, ConstantIsConstant) {
  Rule rule("ln.weight", plan::InitKind::constant, 1, 9);
  EXPECT_EQ(rule.values(5, 1), std::vector<float>(5, 1.0f));
}

TEST(Init, SplitAnywhereGivesTheSame) {
  std::vector<float> whole = normal.values(5000, 42);
  for (size_t cut : {1u, 2u, 3u, 4u, 5u, 1023u, 1024u, 1025u, 4999u}) {
    std::vector<float> joined = normal.values(cut, 42);
    std::vector<float> rest = normal.values(5000 - cut, 42, cut);
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, whole) << cut;
  }
}

TEST(Init, SeedAndNameDecideTheValues) {
  std::vector<float> base = normal.values(64, 1);
  EXPECT_EQ(normal.values(64, 1), base);
  EXPECT_NE(normal.values(64, 2), base);
  EXPECT_NE(normal.values(64, 1 + (uint64_t{1} << 32)), base);
  Rule other("h.1.attn.weight", plan::InitKind::normal, 0.5f, 2.0f);
  EXPECT_NE(other.values(64, 1), base);
}

// Elements beyond 2^34 use the upper word of the block number.
TEST(Init, LargeTensorsDoNotRepeat) {
  EXPECT_NE(normal.values(64, 1, uint64_t{1} << 34), normal.values(64, 1));
}

// Recomputed from the header's formula in double, by the Philox of the tests.
TEST(Init, FollowsTheFormula) {
  Rule rule("abc", plan::InitKind::normal, 0, 1);
  std::vector<float> values = rule.values(4000, 0x123456789abcdefull);
  constexpr uint64_t hash = 0x78af5f94892f3950; // XXH3-64 of "abc"
  for (uint32_t block = 0; block < 1000; ++block) {
    auto w = philox({block, 0, uint32_t(hash), uint32_t(hash >> 32)},
                    {0x89abcdef, 0x01234567});
    for (int pair = 0; pair < 2; ++pair) {
      double radius = std::sqrt(-2 * std::log((w[pair * 2] + 1.0) / 0x1p32));
      double angle = 2 * M_PI * w[pair * 2 + 1] / 0x1p32;
      // 1e-6 relative to the largest value covers f32 arithmetic, except where
      // the radius is near zero and its root magnifies: there an absolute 4e-4.
      double tolerance = radius < 0.01 ? 4e-4 : 4e-6;
      EXPECT_NEAR(values[block * 4 + pair * 2], radius * std::cos(angle),
                  tolerance);
      EXPECT_NEAR(values[block * 4 + pair * 2 + 1], radius * std::sin(angle),
                  tolerance);
    }
  }
}

} // namespace
} // namespace meshwork::runtime
