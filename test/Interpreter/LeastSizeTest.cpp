// Small sizes are split as large ones are.
#include "passes/verify/LeastSize.h"
#include <gtest/gtest.h>

using meshwork::verify::leastSize;
using meshwork::verify::Split;

namespace {

TEST(LeastSize, KeepsWhatDividesAndWhatDoesNot) {
  EXPECT_EQ(leastSize(16384, {{8, 2}}), 4); // divides, several each
  EXPECT_EQ(leastSize(16385, {{8, 2}}), 5); // the last rank has less
  EXPECT_EQ(leastSize(8, {{8, 2}}), 2);     // one each
  EXPECT_EQ(leastSize(9, {{8, 4}}), 5);     // and ranks without any
  EXPECT_EQ(leastSize(3, {{8, 4}}), 1);     // fewer than ranks
  // 8 divides it, 1024 does not.
  EXPECT_EQ(leastSize(128256, {{8, 2}, {1024, 4}}), 6);
  EXPECT_EQ(leastSize(96, {{8, 2}, {16, 4}, {2, 2}}, 5), 8);
}

TEST(LeastSize, KeepsWhatAPartHasInCommonWithAUnit) {
  EXPECT_EQ(leastSize(4096, {{8, 2, 16}}), 32); // multiples of 16
  EXPECT_EQ(leastSize(704, {{8, 2, 16}}), 16);  // 88 and 8: of 8
  EXPECT_EQ(leastSize(1000, {{8, 2, 16}}), 6);  // 125 and 3: of nothing
  EXPECT_EQ(leastSize(96, {{1, 1, 16}, {2, 2}}), 16);
}

TEST(LeastSize, FailsForTheFewest) {
  // 2 must divide and must not.
  EXPECT_EQ(leastSize(12, {{4, 2}, {8, 2}, {3, 3}}), 6);
  EXPECT_EQ(leastSize(7, {}), 1);
  EXPECT_EQ(leastSize(7, {}, 20), 7); // never larger
}

} // namespace
