// Links as tiers: nodes with some adapters, and what lies above them.
#include <gtest/gtest.h>

#include "lib/Cost/Times.h"

#include <cmath>

namespace meshwork::cost {
namespace {

using plan::CollectiveKind;

/// Nodes of eight ranks: 100 GB/s within one, 10 GB/s through an adapter.
Machine tiers(uint32_t adapters) {
  Machine m;
  m.device = spec::Device::cuda;
  m.ranksPerNode = 8;
  m.links = {Link{0, 100e9}, Link{0, 100e9}, Link{0, 10e9}};
  m.adapters = adapters;
  return m;
}

/// Seconds of an all_gather in which each rank sends `sent` bytes.
double gather(const Machine &machine, const std::vector<uint64_t> &mesh,
              uint32_t axis, double sent) {
  double bytes = sent / static_cast<double>(mesh[axis] - 1);
  return Times(machine, mesh)
      .collective(CollectiveKind::all_gather, bytes, {&axis, 1});
}

/// All ranks that a node has of a group send through an adapter each, as many
/// as there are, and no faster than the link within the node.
TEST(Tiers, AGroupUsesTheAdaptersOfItsRanks) {
  EXPECT_DOUBLE_EQ(gather(tiers(8), {16}, 0, 80e9), 1);    // 8 adapters
  EXPECT_DOUBLE_EQ(gather(tiers(4), {16}, 0, 80e9), 2);    // 4 for 8 ranks
  EXPECT_DOUBLE_EQ(gather(tiers(8), {4, 8}, 0, 80e9), 8);  // one rank a node
  EXPECT_DOUBLE_EQ(gather(tiers(4), {4, 8}, 0, 80e9), 16); // half of one
  EXPECT_DOUBLE_EQ(gather(tiers(8), {16, 4}, 0, 80e9), 4); // two ranks a node
  EXPECT_DOUBLE_EQ(gather(tiers(32), {16}, 0, 100e9), 100.0 / 80);
  Machine fast = tiers(8);
  fast.links[2].bandwidth = 50e9; // 8 of them are more than the inner link
  EXPECT_DOUBLE_EQ(gather(fast, {16}, 0, 100e9), 1);
  EXPECT_DOUBLE_EQ(gather(fast, {4, 8}, 0, 100e9), 2);
  EXPECT_DOUBLE_EQ(gather(tiers(8), {2, 8}, 1, 100e9), 1); // within a node
}

/// Without adapters a file reads as it did: a rank has the bandwidth for
/// itself.
TEST(Tiers, WithoutAdaptersARankHasItsOwn) {
  EXPECT_DOUBLE_EQ(gather(tiers(0), {16}, 0, 80e9), 8);
  EXPECT_DOUBLE_EQ(gather(tiers(0), {4, 8}, 0, 80e9), 8);
}

/// Groups of six, some of which lie in one node, and all as if they did not.
TEST(Tiers, AGroupThatANodeCutsLiesInTwo) {
  EXPECT_DOUBLE_EQ(gather(tiers(8), {4, 6}, 1, 30e9), 1); // three adapters
}

TEST(Tiers, ManyNodesMeetAboveTheSpine) {
  Machine m = tiers(8);
  m.spine = {4, 0.5};
  EXPECT_DOUBLE_EQ(gather(m, {32}, 0, 80e9), 1); // four nodes
  EXPECT_DOUBLE_EQ(gather(m, {40}, 0, 80e9), 2); // five
}

/// Each rank has its own bytes for the other nodes: of 16 ranks 8 of 15 parts
/// leave the node, and 8 ranks share 8 adapters.
TEST(Tiers, AnAllToAllSendsEachRanksOwnBytes) {
  Machine m = tiers(8);
  uint32_t axis = 0;
  double sent = 15e9, whole = sent * 16 / 15;
  EXPECT_DOUBLE_EQ(
      Times(m, {16}).collective(CollectiveKind::all_to_all, whole, {&axis, 1}),
      8e9 / 10e9);
}

TEST(Tiers, TransfersBetweenNodesHaveAnAdapter) {
  EXPECT_DOUBLE_EQ(Times(tiers(8), {4, 8}).transfer(10e9, 0), 1);
  EXPECT_DOUBLE_EQ(Times(tiers(2), {4, 8}).transfer(10e9, 0), 4);
}

/// 2 nodes of 8 ranks: 14 steps within nodes and one between them, twice in a
/// sum; or up and down a tree, 7 and one.
TEST(Hops, AreOfARingOrATree) {
  Machine m = tiers(8);
  m.links[1].hop = 1;
  m.links[2].hop = 100;
  EXPECT_DOUBLE_EQ(gather(m, {16}, 0, 0), 114);
  uint32_t axis = 0;
  auto sum = [&](uint64_t ranks) {
    return Times(m, {ranks})
        .collective(CollectiveKind::all_reduce, 0, {&axis, 1});
  };
  EXPECT_DOUBLE_EQ(sum(16), 2 * (7 + 100));
  EXPECT_DOUBLE_EQ(sum(8), 2 * 7);
  EXPECT_DOUBLE_EQ(sum(8 * 64), 2 * (7 + 6 * 100)); // 64 nodes are 6 deep
  EXPECT_DOUBLE_EQ(Times(m, {4, 8}).transfer(0, 0), 100);
  EXPECT_DOUBLE_EQ(Times(m, {4, 8}).transfer(0, 1), 1);
}

/// Much less than half_size moves at half of the bandwidth, half_size itself
/// at two thirds, much more at all of it.
TEST(Ramps, OfALinkLeadFromHalfToAllOfItsBandwidth) {
  Machine m = tiers(8);
  m.links[1].halfSize = 1e6;
  auto rate = [&](double sent) { return sent / gather(m, {8}, 0, sent); };
  EXPECT_NEAR(rate(1e2), 50e9, 1e7);
  EXPECT_NEAR(rate(1e6), 100e9 / 1.5, 1e6);
  EXPECT_NEAR(rate(1e12), 100e9, 1e6);
}

/// Of 54 nodes whose times differ by 1 %; log(54.6) is 4.
TEST(Nodes, WaitForTheSlowestAndForWhoIsLate) {
  Machine m = tiers(8);
  m.flops.fill(1e12);
  m.memory = m.kernels = 1e12;
  m.jitter = 0.01;
  m.late = 0.5;
  Work work{Work::product};
  EXPECT_DOUBLE_EQ(Times(m, {8}).instruction(work, 1e12, 0), 1);
  EXPECT_DOUBLE_EQ(Times(m, {54, 8}).instruction(work, 1e12, 0),
                   1 + 0.01 * std::sqrt(2 * std::log(54)));
  EXPECT_DOUBLE_EQ(gather(m, {8}, 0, 100e9), 1);
  EXPECT_DOUBLE_EQ(gather(m, {16}, 0, 80e9), 1.5);
}

/// Means of the largest of so many numbers of a normal distribution with
/// deviation 1. Source: Teichroew, Ann. Math. Statist. 27 (1956) 410-426.
TEST(Ranks, WaitForTheSlowestOfThem) {
  Machine m = tiers(8);
  m.flops.fill(1e12);
  m.memory = m.kernels = 1e12;
  m.rankJitter = 0.01;
  auto slowest = [&](uint64_t ranks) {
    return Times(m, {ranks}).instruction({Work::product}, 1e12, 0);
  };
  EXPECT_DOUBLE_EQ(slowest(1), 1);
  EXPECT_NEAR(slowest(2), 1.00564, 4e-4);
  EXPECT_NEAR(slowest(8), 1.01424, 2e-4);
  EXPECT_NEAR(slowest(1000), 1.03241, 2e-4);
}

} // namespace
} // namespace meshwork::cost
