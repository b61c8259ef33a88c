#include "runtime/core/Pace.h"
#include "runtime/core/Clock.h"
#include <gtest/gtest.h>
#include <thread>

namespace meshwork::runtime {
namespace {

constexpr int64_t millisecond = 1'000'000, hour = 3600'000 * millisecond;

TEST(Pace, WhatOthersHaveWorkedForItIsFollowedByRest) {
  Pace pace;
  int64_t begin = steadyNs();
  pace.start(true, 2 * millisecond);
  std::thread([&] { pace.rest(); }).join();
  EXPECT_GE(steadyNs() - begin, (Pace::share - 1) * 2 * millisecond);
}

TEST(Pace, ItsOwnWorkIsFollowedByRest) {
  Pace pace;
  pace.start(true, 0);
  int64_t begin = steadyNs();
  timespec time{};
  std::thread([&] {
    do
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec == 0 && time.tv_nsec < 2 * millisecond);
    pace.rest();
  }).join();
  EXPECT_GE(steadyNs() - begin, Pace::share * 2 * millisecond);
}

// Each would rest for hours: the test ends, or runs out of time.
TEST(Pace, HurryEndsTheRestAndAllThatFollow) {
  Pace pace;
  pace.start(true, hour);
  std::thread worker([&] {
    pace.rest();
    pace.rest();
  });
  pace.hurry();
  worker.join();
}

TEST(Pace, WhoMayNotRestGoesOn) {
  Pace pace;
  pace.start(false, hour);
  pace.rest();
}

TEST(Pace, ItRestsAgainWhenItIsStartedAgain) {
  Pace pace;
  pace.hurry();
  int64_t begin = steadyNs();
  pace.start(true, 2 * millisecond);
  std::thread([&] { pace.rest(); }).join();
  EXPECT_GE(steadyNs() - begin, (Pace::share - 1) * 2 * millisecond);
}

} // namespace
} // namespace meshwork::runtime
