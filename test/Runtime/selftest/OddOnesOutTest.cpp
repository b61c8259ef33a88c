#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/selftest/OddOnesOut.h"

namespace meshwork::runtime {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

TEST(SlowLinks, BelowHalfOfTheMedian) {
  std::vector<PairLink> links = {
      {0, 1, 1e-5, 10e9}, {0, 2, 1e-5, 12e9}, {1, 2, 1e-5, 4e9}};
  EXPECT_THAT(slowLinks(links, "two hosts"),
              ElementsAre("ranks 1 and 2, on two hosts: 4 GB/s, the median of "
                          "such pairs is 10"));
  links[2].bandwidth = 6e9;
  EXPECT_THAT(slowLinks(links, "two hosts"), IsEmpty());
  links[2].latency = 1e-3;
  EXPECT_THAT(slowLinks(links, "two hosts"),
              ElementsAre("ranks 1 and 2, on two hosts: a small message takes "
                          "1e+03 us, the median of such pairs is 10"));
}

TEST(SlowLinks, OfTwoNobodyKnowsWhichIsWrong) {
  EXPECT_THAT(slowLinks({{0, 1, 1, 1}, {0, 2, 1e-5, 12e9}}, "x"), IsEmpty());
}

TEST(SlowRanks, BelowSevenTenthsOfTheMedian) {
  EXPECT_THAT(slowRanks({100, 99, 60, 101}, "products"),
              ElementsAre("rank 2: products run at 60 % of the median rank's "
                          "rate"));
  EXPECT_THAT(slowRanks({100, 71, 101}, "products"), IsEmpty());
  EXPECT_THAT(slowRanks({}, "products"), IsEmpty());
}
} // namespace
} // namespace meshwork::runtime
