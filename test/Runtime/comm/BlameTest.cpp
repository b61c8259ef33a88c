// Who is at fault when ranks wait for each other.
#include "runtime/comm/Blame.h"
#include "runtime/comm/InProcess.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <thread>

namespace meshwork::runtime {
namespace {

/// Rank 0 of four waits for rank 1; `others` answer, the rest do not.
std::string blamed(const std::map<uint32_t, Waiting> &others) {
  absl::Status status = blame(0, 4, {true, "all_reduce \"x\"", {1}}, 2.04,
                              [&](uint32_t rank) -> std::optional<Waiting> {
                                auto found = others.find(rank);
                                if (found == others.end())
                                  return std::nullopt;
                                return found->second;
                              });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  return std::string(status.message());
}

TEST(Blame, GoesToTheEndOfAChain) {
  EXPECT_EQ(blamed({{1, {true, "its GPU", {0, 2}}}, {2, {}}}),
            "rank 2 did not arrive at its GPU within 2 s and waits for nobody: "
            "it computes, or is caught in a loop");
}

TEST(Blame, NamesAllThatDoNotAnswer) {
  EXPECT_EQ(blamed({{1, {true, "the end of a step", {0, 2, 3}}}}),
            "rank 2 did not arrive at the end of a step within 2 s and does "
            "not answer: it is stopped, or cut off; rank 3 did not arrive at "
            "the end of a step within 2 s and does not answer: it is stopped, "
            "or cut off");
}

TEST(Blame, TellsWhereRanksWaitForEachOther) {
  EXPECT_EQ(blamed({{1, {true, "its GPU", {0}}}}),
            "ranks wait for each other longer than 2 s: rank 0 at all_reduce "
            "\"x\", rank 1 at its GPU");
}

Waiting fileWork() { return {false, "it writes weights", {}, true}; }

TEST(Blame, FallsOnNobodyWhereRanksWaitForADisk) {
  auto ask = [](uint32_t rank) -> std::optional<Waiting> {
    return rank == 1 ? Waiting{true, "the end", {2}} : fileWork();
  };
  EXPECT_TRUE(blame(0, 4, {true, "the end", {1}}, 2, ask).ok());
}

TEST(Blame, FallsOnTheStoppedThoughOthersWaitForADisk) {
  EXPECT_EQ(blamed({{1, {true, "the end", {2, 3}}}, {2, fileWork()}}),
            "rank 3 did not arrive at the end within 2 s and does not answer: "
            "it is stopped, or cut off");
}

constexpr double timeout = 0.05;

/// Rank 1 comes after three times the time-out.
TEST(Blame, ThreadsWaitForADisk) {
  InProcessTransport host(Mesh({2}), {timeout, false});
  FileWork work(host, 1, "it reads the data");
  absl::Status first;
  std::thread other([&] { first = host.agree(0, 0, "the start").status(); });
  std::this_thread::sleep_for(std::chrono::duration<double>(3 * timeout));
  EXPECT_TRUE(host.agree(1, 0, "the start").ok());
  other.join();
  EXPECT_TRUE(first.ok()) << first;
}

TEST(Blame, ThreadsWaitForNobodyElse) {
  InProcessTransport host(Mesh({2}), {timeout, false});
  EXPECT_TRUE(absl::IsDeadlineExceeded(host.agree(0, 0, "the start").status()));
}

/// Rank 1 waits for rank 2 by other means, rank 0 for both; rank 2 does
/// something else.
TEST(Blame, WaitsElsewhereAreFollowedInOneProcess) {
  InProcessTransport host(Mesh({3}), {});
  PeerWait first(host, 1, {true, "its GPU", {2}});
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_TRUE(first.check(60).ok());
  {
    PeerWait second(host, 0, {true, "the end", {1, 2}});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THAT(second.check(0).message(),
                testing::MatchesRegex(
                    "rank 2 did not arrive at the end within [0-9.]+ s and "
                    "waits for nobody: it computes, or is caught in a loop"));
  }
  host.abort(2, absl::InternalError("the disk is full"));
  PeerWait third(host, 0, {true, "the end", {1, 2}});
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(third.check(0).message(),
            "stopped because rank 2 failed: the disk is full");
}

} // namespace
} // namespace meshwork::runtime
