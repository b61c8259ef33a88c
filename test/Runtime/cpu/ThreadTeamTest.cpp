#include "runtime/base/ThreadTeam.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "test/Runtime/FewThreads.h"

namespace meshwork::runtime {
namespace {

TEST(ThreadTeam, CoversEachItemOnce) {
  for (int threads : {-1, 1, 2, 3, 8}) {
    ThreadTeam team(threads, {});
    EXPECT_EQ(team.size(), std::max(threads, 1));
    for (int64_t items : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<int> visits(items);
      team.parallelFor(items, [&](int64_t begin, int64_t end, int thread) {
        EXPECT_LT(begin, end);
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, team.size());
        for (int64_t i = begin; i < end; ++i)
          ++visits[i]; // Unguarded: a race is an error of the team.
      });
      EXPECT_EQ(visits, std::vector<int>(items, 1));
    }
  }
}

TEST(ThreadTeam, SharesDifferByAtMostOneAndFollowTheThread) {
  ThreadTeam team(3, {});
  std::vector<std::pair<int64_t, int64_t>> shares(3);
  team.parallelFor(11, [&](int64_t begin, int64_t end, int thread) {
    shares[thread] = {begin, end};
  });
  EXPECT_EQ(shares, (std::vector<std::pair<int64_t, int64_t>>{
                        {0, 4}, {4, 8}, {8, 11}}));
}

TEST(ThreadTeam, HandlesTheLargestCount) {
  ThreadTeam team(4, {});
  std::atomic<uint64_t> sum = 0;
  int64_t largest = INT64_MAX;
  team.parallelFor(largest, [&](int64_t begin, int64_t end, int) {
    sum += static_cast<uint64_t>(end - begin);
  });
  EXPECT_EQ(sum, static_cast<uint64_t>(largest));
}

TEST(ThreadTeam, ManyShortLoopsInARow) {
  ThreadTeam team(3, {});
  std::vector<int64_t> sums(300);
  for (int round = 0; round < 5000; ++round)
    team.parallelFor(300, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        sums[i] += i;
    });
  int64_t total = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  EXPECT_EQ(total, 5000 * (300 * 299 / 2));
}

TEST(ThreadTeam, WakesAfterSleep) {
  ThreadTeam team(2, {});
  for (int round = 0; round < 3; ++round) {
    // Longer than workers poll.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> calls = 0;
    team.parallelFor(2, [&](int64_t, int64_t, int thread) {
      if (thread == 1) // Lets the caller fall asleep too.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++calls;
    });
    EXPECT_EQ(calls, 2);
  }
}

TEST(ThreadTeam, IgnoresCpusThatDoNotExist) {
  ThreadTeam team(3, {-5, 1 << 20, 100000});
  std::atomic<int64_t> sum = 0;
  team.parallelFor(
      10, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  EXPECT_EQ(sum, 10);
}

TEST(ThreadTeam, WorksWithTheThreadsThatItGets) {
  if (!test::canLimitThreads())
    GTEST_SKIP() << "needs root";
  auto sizeAndDone = [] {
    test::limitThreads(3);
    ThreadTeam team(8, {});
    std::atomic<int64_t> done = 0;
    team.parallelFor(
        100, [&](int64_t begin, int64_t end, int) { done += end - begin; });
    bool told = absl::IsResourceExhausted(team.status());
    std::_Exit(told && done == 100 ? team.size() : 99);
  };
  EXPECT_EXIT(sizeAndDone(), testing::ExitedWithCode(3), "");
  EXPECT_TRUE(ThreadTeam(3, {}).status().ok());
}

} // namespace
} // namespace meshwork::runtime
