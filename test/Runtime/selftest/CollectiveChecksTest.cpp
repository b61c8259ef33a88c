#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Faulty.h"
#include "runtime/selftest/CollectiveChecks.h"

namespace meshwork::runtime::test {
namespace {
using Kind = plan::CollectiveKind;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<CollectiveCheck> checkAll(const std::vector<uint32_t> &sizes,
                                      Faulty::SpoilCollective spoil = {}) {
  Faulty transport(Mesh(sizes), std::move(spoil), {});
  auto found = onAllRanks(transport, [&](uint32_t rank) {
    return checkCollectives(transport, rank, Mesh(sizes),
                            static_cast<uint32_t>(sizes.size()));
  });
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

TEST(MeshToCheck, HasUpToThreeAxes) {
  EXPECT_THAT(meshToCheck(1), ElementsAre(1));
  EXPECT_THAT(meshToCheck(2), ElementsAre(2));
  EXPECT_THAT(meshToCheck(7), ElementsAre(7));
  EXPECT_THAT(meshToCheck(6), ElementsAre(2, 3));
  EXPECT_THAT(meshToCheck(64), ElementsAre(2, 2, 16));
}

/// Seven lists of three axes; five kinds and three types, and two of maxima.
TEST(CollectiveChecks, AllAreRightOnEveryGroup) {
  std::vector<CollectiveCheck> found = checkAll({2, 2, 2});
  EXPECT_EQ(found.size(), 7u * (5 * 3 + 2));
  for (const CollectiveCheck &one : found) {
    EXPECT_THAT(one.wrong, IsEmpty());
    EXPECT_GT(one.seconds, 0);
    EXPECT_EQ(one.ranks, 1u << one.axes.size());
  }
}

TEST(CollectiveChecks, OneWrongBitIsFound) {
  std::vector<CollectiveCheck> found =
      checkAll({2, 3}, [](uint32_t rank, const CollectiveRequest &request) {
        bool isIt = rank == 4 && request.kind == Kind::all_gather &&
                    request.axes == std::vector<uint32_t>{1} &&
                    request.parts[0].dst.dtype == plan::DType::bf16;
        if (isIt)
          request.parts[0].dst.data[2 * 70000] ^= std::byte{1};
      });
  int wrong = 0;
  for (const CollectiveCheck &one : found)
    if (!one.wrong.empty()) {
      ++wrong;
      EXPECT_EQ(one.kind, Kind::all_gather);
      EXPECT_THAT(one.wrong,
                  testing::StartsWith("rank 4, element 70000 of 120027: bits"));
    }
  EXPECT_EQ(wrong, 1);
}
} // namespace
} // namespace meshwork::runtime::test
