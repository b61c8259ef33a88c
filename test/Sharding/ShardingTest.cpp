#include <gtest/gtest.h>

#include "lib/Sharding/Sharding.h"

namespace meshwork::sharding {
namespace {

const Mesh mesh{{{"dp", 2}, {"tp", 4}, {"x", 3}}};

TEST(Mesh, RanksAreRowMajor) {
  EXPECT_EQ(mesh.numRanks(), 24);
  EXPECT_EQ(mesh.numRanks({2, 0}), 6);
  int64_t rank = 1 * 12 + 3 * 3 + 2;
  EXPECT_EQ(mesh.coordinate(rank, 0), 1);
  EXPECT_EQ(mesh.coordinate(rank, 1), 3);
  EXPECT_EQ(mesh.coordinate(rank, 2), 2);
  EXPECT_EQ(mesh.index(rank, {2, 0}), 2 * 2 + 1);
  EXPECT_EQ(mesh.withIndex(rank, {2, 0}, 2), 0 * 12 + 3 * 3 + 1);
  EXPECT_EQ(Mesh{}.numRanks(), 1);
}

TEST(Mesh, WithIndexInvertsIndex) {
  for (int64_t rank = 0; rank < 24; ++rank)
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_EQ(mesh.index(mesh.withIndex(rank, {1, 2}, i), {1, 2}), i);
}

TEST(Sharding, Text) {
  Sharding sharding{{{0}, {1, 2}, {}}, {}, Reduction::sum};
  EXPECT_EQ(sharding.text(mesh), R"([{"dp"}, {"tp", "x"}, {}])");
  sharding = {{{}}, {2, 0}, Reduction::max};
  EXPECT_EQ(sharding.text(mesh), R"([{}] partial max {"dp", "x"})");
  EXPECT_EQ(Sharding{}.text(mesh), "[]");
}

TEST(Sharding, EqualityAndHash) {
  Sharding a{{{0}, {}}, {1, 2}, Reduction::sum};
  Sharding b{{{0}, {}}, {2, 1}, Reduction::sum};
  EXPECT_EQ(a, b);
  EXPECT_EQ(hash(a), hash(b));
  b.reduction = Reduction::max;
  EXPECT_NE(a, b);
  EXPECT_NE(hash(a), hash(b));
  a.partial.clear();
  b.partial.clear();
  EXPECT_EQ(a, b) << "nothing to reduce";
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_NE((Sharding{{{0, 1}}, {}, {}}), (Sharding{{{1, 0}}, {}, {}}));
  EXPECT_NE(hash(Sharding{{{0}, {}}, {}, {}}),
            hash(Sharding{{{}, {0}}, {}, {}}));
}

TEST(Sharding, UnevenBlocksNest) {
  // 10 over dp: 5 and 5; each over tp: 2, 2, 1 and nothing.
  EXPECT_EQ(localSize(mesh, 10, {0, 1}), 2);
  using Ranges = std::vector<layout::Range>;
  EXPECT_EQ(rangesOf(mesh, 10, {0, 1}, 0), (Ranges{{0, 2, 0}}));
  EXPECT_EQ(rangesOf(mesh, 10, {0, 1}, 2 * 3), (Ranges{{4, 1, 0}}));
  EXPECT_EQ(rangesOf(mesh, 10, {0, 1}, 3 * 3), (Ranges{{6, 0, 0}}));
  EXPECT_EQ(rangesOf(mesh, 10, {0, 1}, 4 * 3), (Ranges{{5, 2, 0}}));
  EXPECT_EQ(localShape(mesh, {10, 7}, {{{0, 1}, {2}}, {}, {}}),
            (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(localSize(mesh, 0, {0}), 0);
}

TEST(Sharding, AxesOfAZigzagSplitTheDimTogether) {
  constexpr AxisId dp(0, DimLayout::zigzag), tp(1, DimLayout::zigzag);
  using Ranges = std::vector<layout::Range>;
  // 2 x 4 ranks, 16 chunks of one: rank 5 of them has 5 and 10.
  int64_t rank = 1 * 12 + 1 * 3;
  EXPECT_EQ(rangesOf(mesh, 16, {dp, tp}, rank),
            (Ranges{{5, 1, 0}, {10, 1, 1}}));
  EXPECT_EQ(rangesOf(mesh, 16, {dp, 1}, rank), (Ranges{{6, 2, 0}}))
      << "the second block of two of 4 to 11";
  EXPECT_EQ(localSize(mesh, 17, {dp, tp}), 4);
  EXPECT_EQ(localSize(mesh, 17, {dp, 1}), 3);
  EXPECT_EQ(sharedMajor({dp, tp}, {dp, tp, 2}), 2u);
  EXPECT_EQ(sharedMajor({dp, tp}, {dp, 1}), 0u) << "another run";
  EXPECT_EQ(sharedMajor({dp, 1}, {0, 1}), 0u) << "another layout";
  EXPECT_NE((Sharding{{{dp}}, {}, {}}), (Sharding{{{0}}, {}, {}}));
  EXPECT_NE(hash(Sharding{{{dp}}, {}, {}}), hash(Sharding{{{0}}, {}, {}}));
  EXPECT_EQ((Sharding{{{dp, 1}}, {}, {}}).text(mesh),
            R"([{"dp" zigzag, "tp"}])");
}

TEST(Sharding, RangesCoverEachElementOnce) {
  for (int64_t size : {0, 1, 2, 3, 5, 7, 12, 23, 24, 25, 100})
    for (const std::vector<AxisId> &axes :
         std::vector<std::vector<AxisId>>{{}, {0}, {1, 0}, {0, 1, 2}, {2, 1}}) {
      std::vector<int> holders(static_cast<size_t>(size));
      for (int64_t rank = 0; rank < 24; ++rank) {
        for (const layout::Range &range : rangesOf(mesh, size, axes, rank)) {
          ASSERT_LE(range.count, localSize(mesh, size, axes));
          for (int64_t i = 0; i < range.count; ++i)
            ++holders[static_cast<size_t>(range.begin + i)];
        }
      }
      for (int count : holders)
        EXPECT_EQ(count, 24 / mesh.numRanks(axes));
    }
}

TEST(Sharding, NormalizedLeavesOutAxesOfOneRank) {
  Mesh ones{{{"a", 1}, {"b", 2}, {"c", 1}, {"d", 2}}};
  Sharding sharding{{{0, 1}, {}}, {3, 2}, Reduction::sum};
  EXPECT_EQ(normalized(ones, sharding).text(ones),
            R"([{"b"}, {}] partial sum {"d"})");
}

TEST(ShardingErrors, Meshes) {
  EXPECT_EQ(check(mesh), "");
  EXPECT_EQ(check(Mesh{{{"a", 2}, {"a", 2}}}), "the mesh has axis \"a\" twice");
  EXPECT_EQ(check(Mesh{{{"a", 0}}}),
            "axis \"a\": found size 0, expected 1 or more");
  EXPECT_EQ(check(Mesh{{{"a", 1 << 30}, {"b", 2}}}), "");
  EXPECT_EQ(check(Mesh{{{"a", 1 << 30}, {"b", 3}}}),
            "the mesh has more than 2147483648 ranks; use smaller axes");
}

TEST(ShardingErrors, Shardings) {
  EXPECT_EQ(check(mesh, {4, 4}, {{{0}, {1, 2}}, {}, {}}), "");
  EXPECT_EQ(check(mesh, {4, 4}, {{{0}}, {}, {}}),
            "found a sharding of 1 dims, expected the tensor's 2");
  EXPECT_EQ(check(mesh, {4, 4}, {{{0}, {3}}, {}, {}}),
            "dim 1: found axis #3, expected one of the mesh's 3 axes");
  EXPECT_EQ(check(mesh, {4, 4}, {{{0}, {1, 0}}, {}, {}}),
            "dim 1: found axis \"dp\" again, expected each axis to be used "
            "once");
  EXPECT_EQ(check(mesh, {4}, {{{0}}, {7}, {}}),
            "partial: found axis #7, expected one of the mesh's 3 axes");
  EXPECT_EQ(check(mesh, {4}, {{{0}}, {1, 0}, {}}),
            "partial: found axis \"dp\" again, expected each axis to be used "
            "once");
  EXPECT_EQ(check(mesh, {-1}, {{{0}}, {}, {}}),
            "dim 0: found size -1, expected 0 or more");
}

} // namespace
} // namespace meshwork::sharding
