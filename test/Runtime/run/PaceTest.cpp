#include "runtime/save/Pace.h"
#include "runtime/machine/Clock.h"
#include <atomic>
#include <chrono>
#include <ctime>
#include <gtest/gtest.h>
#include <thread>

namespace meshwork::runtime {
namespace {

constexpr int64_t millisecond = 1'000'000;

/// Rests after some work, `worked` ns of it; ns from `pace` on.
int64_t restAfter(Pace &pace, int64_t worked) {
  int64_t from = steadyNs();
  std::thread([&] {
    timespec time{};
    do
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec == 0 && time.tv_nsec < worked);
    pace.rest();
  }).join();
  return steadyNs() - from;
}

TEST(Pace, WorkIsFollowedByRest) {
  Pace pace;
  pace.start(true);
  pace.begin();
  EXPECT_GE(restAfter(pace, 2 * millisecond),
            (Pace::share - 1) * 2 * millisecond);
}

TEST(Pace, RestsUntilItMayBegin) {
  Pace pace;
  std::atomic<bool> hasBegun = false, didWait = false;
  pace.start(true);
  std::thread worker([&] {
    pace.rest();
    didWait = hasBegun.load();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  hasBegun = true;
  pace.begin();
  worker.join();
  EXPECT_TRUE(didWait);
}

TEST(Pace, BeginsOnce) {
  Pace pace;
  pace.start(true);
  pace.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  pace.begin();
  // All of the rest is over; had it begun again it would last 384 ms.
  EXPECT_LT(restAfter(pace, 24 * millisecond), 360 * millisecond);
}

// Each would rest for ever: the test ends, or runs out of time.
TEST(Pace, HurryEndsTheRestAndAllThatFollow) {
  Pace pace;
  pace.start(true);
  std::thread worker([&] {
    pace.rest();
    pace.rest();
  });
  pace.hurry();
  worker.join();
}

TEST(Pace, WhoMayNotRestGoesOn) {
  Pace pace;
  pace.start(false);
  pace.rest();
}

TEST(Pace, ItRestsAgainWhenItIsStartedAgain) {
  Pace pace;
  pace.hurry();
  pace.start(true);
  pace.begin();
  EXPECT_GE(restAfter(pace, 2 * millisecond),
            (Pace::share - 1) * 2 * millisecond);
}

} // namespace
} // namespace meshwork::runtime
