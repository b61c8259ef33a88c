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

/// Of three hidden seconds a tenth comes back; what is waited for does not.
TEST(ListClock, HidingIsNotFree) {
  ListClock clock(/*slowdown=*/0.1);
  clock.start({.seconds = 4, .channel = 1, .over = dp});
  clock.compute(3);
  clock.wait(1, 1);
  EXPECT_DOUBLE_EQ(clock.now(), 4.3);
  EXPECT_THAT(clock.exposed(), ElementsAre(Pair(dp, 1)));
}

TEST(ListClock, ChannelsTakeTurnsAtSharedAdapters) {
  for (bool shared : {false, true}) {
    ListClock clock;
    clock.start({3, 1, false, /*usesAdapters=*/true, dp});
    clock.start({2, 2, false, /*usesAdapters=*/shared, tp});
    clock.wait(2, 1);
    EXPECT_EQ(clock.now(), shared ? 5 : 2);
  }
}

/// What the rank itself moves waits for adapters that channels use, and
/// channels wait for it.
TEST(ListClock, TheRankSharesAdaptersWithItsChannels) {
  for (bool shared : {false, true}) {
    ListClock clock;
    clock.start({3, 1, false, /*usesAdapters=*/true, dp});
    clock.start({2, 0, false, /*usesAdapters=*/shared, tp});
    EXPECT_EQ(clock.now(), shared ? 5 : 2);
    EXPECT_EQ(clock.exposed().at(tp), shared ? 5 : 2);
    clock.wait(1, 1);
    EXPECT_EQ(clock.now(), shared ? 5 : 3);
  }
  ListClock clock;
  clock.start({2, 0, false, /*usesAdapters=*/true, tp});
  clock.start({3, 1, false, /*usesAdapters=*/true, dp});
  clock.wait(1, 1);
  EXPECT_EQ(clock.now(), 5);
}

/// The rank begins nothing before the host has sent it.
TEST(ListClock, TheHostMayBeTheSlowerOne) {
  ListClock clock(0, /*host=*/2);
  for (double seconds : {1, 1, 5, 1})
    clock.compute(seconds);
  EXPECT_EQ(clock.now(), 12); // sent at 2, 4, 6; the fourth after 6 + 5
  clock.start({.seconds = 1, .channel = 1, .over = dp});
  clock.wait(1, 1);
  EXPECT_EQ(clock.now(), 13);
  for (double seconds : {4, 40}) { // of four runs
    ListClock repeated(0, /*host=*/2);
    repeated.compute(seconds, /*runs=*/4);
    EXPECT_EQ(repeated.now(), seconds == 4 ? 9 : 42);
  }
}

} // namespace
} // namespace meshwork::cost
