#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Cost/ListClock.h"

namespace meshwork::cost {
namespace {

using testing::ElementsAre;
using testing::Pair;

const MovedOver dp{0}, tp{1};

/// Two moves of a channel, one after the other: of five seconds three are
/// hidden, the first two of the second move's two are waited for.
TEST(ListClock, TellsWhatIsNotHiddenByAxes) {
  ListClock clock;
  clock.start({.seconds = 3, .channel = 1, .over = dp});
  clock.start({.seconds = 2, .channel = 1, .over = tp});
  clock.compute(1);
  clock.wait(1, 1);
  EXPECT_EQ(clock.now(), 3);
  EXPECT_THAT(clock.exposed(), ElementsAre(Pair(dp, 2)));
  clock.wait(1, 2);
  clock.wait(1, 2); // Nothing is left.
  EXPECT_EQ(clock.now(), 5);
  EXPECT_THAT(clock.exposed(), ElementsAre(Pair(dp, 2), Pair(tp, 2)));
}

TEST(ListClock, WhatTheRankItselfMovesIsNotHidden) {
  ListClock clock;
  clock.start({.seconds = 1, .over = dp});
  clock.start({.seconds = 2, .channel = 1, .takesCores = true, .over = dp});
  clock.wait(1, 1);
  EXPECT_EQ(clock.now(), 3);
  EXPECT_THAT(clock.exposed(), ElementsAre(Pair(dp, 3)));
}

TEST(ListClock, CountsAnewAfterARestart) {
  ListClock clock;
  clock.start({.seconds = 4, .channel = 1, .over = dp});
  clock.restart();
  clock.start({.seconds = 1, .channel = 1, .over = tp});
  clock.wait(1, 1);
  EXPECT_EQ(clock.now(), 1);
  EXPECT_THAT(clock.exposed(), ElementsAre(Pair(tp, 1)));
}

} // namespace
} // namespace meshwork::cost
