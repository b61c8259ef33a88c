#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Faulty.h"
#include "runtime/selftest/OddOnesOut.h"
#include <set>

namespace meshwork::runtime::test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Rounds, EveryoneMeetsEveryoneOnce) {
  for (uint32_t members = 1; members < 20; ++members) {
    std::set<std::pair<uint32_t, uint32_t>> met;
    for (uint32_t round = 0; round < numRounds(members); ++round)
      for (uint32_t one = 0; one < members; ++one) {
        std::optional<uint32_t> other = partnerIn(round, one, members);
        if (!other) {
          EXPECT_EQ(members % 2, 1u);
          continue;
        }
        EXPECT_NE(*other, one);
        EXPECT_EQ(partnerIn(round, *other, members), one);
        EXPECT_TRUE(met.emplace(one, *other).second);
      }
    EXPECT_EQ(met.size(), members * (members - 1));
  }
}

std::vector<PairLink> measure(const std::vector<std::vector<uint32_t>> &groups,
                              Faulty::DelayTransfer delay = {}) {
  Faulty transport(Mesh({5}), {}, std::move(delay));
  auto found = onAllRanks(transport, [&](uint32_t rank) {
    return measureLinks(transport, rank, groups, 100);
  });
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

TEST(Links, PairsOfEachGroupAlone) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const PairLink &one : measure({{0, 3, 4}, {1, 2}})) {
    EXPECT_GT(one.bandwidth, 0);
    EXPECT_GT(one.latency, 0);
    pairs.emplace(one.from, one.to);
  }
  EXPECT_THAT(pairs, ElementsAre(std::pair(0, 3), std::pair(0, 4),
                                 std::pair(1, 2), std::pair(3, 4)));
}

/// A fiftieth of a second for each message, whatever its size.
TEST(Links, APlantedSlowLinkIsNamed) {
  std::vector<PairLink> links =
      measure({{0, 1, 2, 3, 4}}, [](uint32_t rank, uint32_t peer) {
        return std::min(rank, peer) == 1 && std::max(rank, peer) == 3 ? 0.02
                                                                      : 0;
      });
  EXPECT_EQ(links.size(), 10u);
  EXPECT_THAT(slowLinks(links, "one host"),
              testing::Contains(HasSubstr("ranks 1 and 3, on one host")));
}
} // namespace
} // namespace meshwork::runtime::test
