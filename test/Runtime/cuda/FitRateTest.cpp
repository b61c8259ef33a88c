#include "runtime/device/cuda/FitRate.h"
#include <gtest/gtest.h>
#include <vector>

namespace meshwork::runtime::cuda::test {
namespace {

std::vector<TimedWork> timesOf(double rate, double halfSize) {
  std::vector<TimedWork> all;
  for (double flops : {1e9, 8e9, 64e9, 512e9})
    all.push_back({flops, (flops + halfSize) / rate});
  return all;
}

TEST(FitRate, findsWhatTimesWereMadeOf) {
  FittedRate found = fitRate(timesOf(8e14, 3e9));
  EXPECT_NEAR(found.flops / 8e14, 1, 1e-9);
  EXPECT_NEAR(found.halfSize / 3e9, 1, 1e-9);
}

/// A tenth more or less in one of four times moves the rate by less.
TEST(FitRate, oneTimeDecidesLittle) {
  for (double factor : {0.9, 1.1})
    for (size_t i = 0; i < 4; ++i) {
      std::vector<TimedWork> times = timesOf(8e14, 3e9);
      times[i].seconds *= factor;
      EXPECT_NEAR(fitRate(times).flops / 8e14, 1, 0.1) << i;
    }
}

TEST(FitRate, workThatIsSlowerWhereItIsLargerHasNoHalfSize) {
  std::vector<TimedWork> times = {{1e9, 1e-3}, {8e9, 9e-3}, {64e9, 80e-3}};
  FittedRate found = fitRate(times);
  EXPECT_EQ(found.halfSize, 0);
  EXPECT_GT(found.flops, 0.8e12);
  EXPECT_LT(found.flops, 1e12);
}

TEST(FitRate, timesThatDoNotGrowGiveTheRateOfTheLargest) {
  std::vector<TimedWork> times = {{1e9, 1e-3}, {8e9, 0.5e-3}, {64e9, 0.2e-3}};
  EXPECT_DOUBLE_EQ(fitRate(times).flops, 64e9 / 0.2e-3);
  EXPECT_EQ(fitRate(times).halfSize, 0);
  std::vector<TimedWork> one = {{1e9, 1e-3}};
  EXPECT_DOUBLE_EQ(fitRate(one).flops, 1e12);
  EXPECT_EQ(fitRate({}).flops, 0);
}

TEST(HalfOf, findsWhatRatesWereMadeOf) {
  auto rate = [](double size) { return 5e14 * size / (size + 91); };
  EXPECT_NEAR(halfOf(64, rate(64), 128, rate(128), 1000), 91, 1e-9);
}

TEST(HalfOf, staysWithinItsBounds) {
  EXPECT_EQ(halfOf(64, 3, 128, 3, 1000), 0); // no gain
  EXPECT_EQ(halfOf(64, 3, 128, 2, 1000), 0); // a loss
  EXPECT_EQ(halfOf(64, 3, 128, 6, 1000), 1000);
  EXPECT_EQ(halfOf(64, 3, 128, 9, 1000), 1000); // more than size gives
}
} // namespace
} // namespace meshwork::runtime::cuda::test
