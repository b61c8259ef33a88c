// Ranges by their definition: for every size, mesh and layout, parts cover each
// element once.
#include <functional>
#include <gtest/gtest.h>

#include "meshwork/Plan/Ranges.h"

namespace meshwork::layout {
namespace {
constexpr DimLayout zigzag = DimLayout::zigzag;

using Ranges = std::vector<Range>;

Ranges rangesOf(int64_t size, std::vector<Cut> cuts) {
  return ranges(size, cuts);
}

TEST(Ranges, OfBlocks) {
  // 10 over 2: 5 and 5; each over 4: 2, 2, 1 and nothing.
  EXPECT_EQ(rangesOf(10, {{2, 0}, {4, 1}}), (Ranges{{2, 2, 0}}));
  EXPECT_EQ(rangesOf(10, {{2, 1}, {4, 2}}), (Ranges{{9, 1, 0}}));
  EXPECT_EQ(rangesOf(10, {{2, 0}, {4, 3}}), (Ranges{{6, 0, 0}}));
  EXPECT_EQ(rangesOf(7, {}), (Ranges{{0, 7, 0}}));
}

TEST(Ranges, OfZigzags) {
  // Chunks of 2: [0,2) [2,4) [4,6) [6,8) [8,10) [10,11).
  EXPECT_EQ(rangesOf(11, {{3, 0, zigzag}}), (Ranges{{0, 2, 0}, {10, 1, 2}}));
  EXPECT_EQ(rangesOf(11, {{3, 1, zigzag}}), (Ranges{{2, 2, 0}, {8, 2, 2}}));
  EXPECT_EQ(rangesOf(11, {{3, 2, zigzag}}), (Ranges{{4, 4, 0}}))
      << "two chunks in the middle are one range";
  EXPECT_EQ(rangesOf(3, {{4, 3, zigzag}}), (Ranges{{3, 0, 0}}));
  EXPECT_EQ(rangesOf(7, {{1, 0, zigzag}}), (Ranges{{0, 7, 0}}))
      << "one rank has all, in order and without padding";
}

TEST(Ranges, ALaterAxisCutsWhatIsStored) {
  std::vector<Cut> cuts = {{2, 0, zigzag}, {2, 0}};
  EXPECT_EQ(storedSize(12, cuts), 3);
  EXPECT_EQ(ranges(12, cuts), (Ranges{{0, 3, 0}}));
  cuts[1].index = 1;
  EXPECT_EQ(ranges(12, cuts), (Ranges{{9, 3, 0}}));
  EXPECT_EQ(rangesOf(12, {{2, 0, zigzag}, {3, 1}}),
            (Ranges{{2, 1, 0}, {9, 1, 1}}));
}

/// Visits all parts that cuts of these sizes and layouts make.
void forEachPart(std::vector<Cut> cuts,
                 const std::function<void(const std::vector<Cut> &)> &visit) {
  for (bool more = true; more;) {
    visit(cuts);
    more = false;
    for (size_t i = cuts.size(); i-- > 0 && !more;) {
      more = ++cuts[i].index < cuts[i].parts;
      cuts[i].index = more ? cuts[i].index : 0;
    }
  }
}

/// Blocks as they were computed before there were layouts.
Ranges byFormula(int64_t size, const std::vector<Cut> &cuts) {
  Range range{0, size, 0};
  for (const Cut &cut : cuts) {
    size = (size + cut.parts - 1) / cut.parts;
    range.begin += cut.index * size;
    range.count = std::clamp<int64_t>(range.count - cut.index * size, 0, size);
  }
  return {range};
}

TEST(Ranges, PartsCoverEachElementOnceFromTheirStartOn) {
  for (const std::vector<Cut> &kind :
       std::vector<std::vector<Cut>>{{},
                                     {{3}},
                                     {{2}, {4}},
                                     {{2}, {3}, {2}},
                                     {{2, 0, zigzag}},
                                     {{5, 0, zigzag}},
                                     {{4, 0, zigzag}, {3}},
                                     {{3}, {4, 0, zigzag}},
                                     {{2}, {3, 0, zigzag}, {2}},
                                     {{2, 0, zigzag}, {3}, {2, 0, zigzag}}})
    for (int64_t size = 1; size <= 40; ++size) {
      std::vector<int> holders(static_cast<size_t>(size));
      bool isBlock = std::all_of(kind.begin(), kind.end(), [](const Cut &cut) {
        return cut.layout == DimLayout::block;
      });
      forEachPart(kind, [&](const std::vector<Cut> &cuts) {
        Ranges part = ranges(size, cuts);
        ASSERT_FALSE(part.empty());
        if (isBlock) {
          ASSERT_EQ(part, byFormula(size, cuts));
        }
        ASSERT_EQ(storedSize(size, cuts), storedSize(size, kind));
        int64_t end = 0;
        for (const Range &range : part) {
          ASSERT_EQ(range.offset, end) << "padding stands behind all elements";
          end += range.count;
          for (int64_t i = 0; i < range.count; ++i)
            ++holders.at(static_cast<size_t>(range.begin + i));
        }
        ASSERT_EQ(end, countOf(part));
        ASSERT_LE(end, storedSize(size, cuts));
      });
      for (int count : holders)
        ASSERT_EQ(count, 1) << size;
    }
}

TEST(Ranges, ZigzagSharesACausalMask) {
  // Query i sees i + 1 keys; 2N divides the length.
  std::vector<int64_t> cost;
  forEachPart({{4, 0, zigzag}}, [&](const std::vector<Cut> &cuts) {
    int64_t sum = 0;
    for (const Range &range : ranges(32, cuts))
      for (int64_t i = 0; i < range.count; ++i)
        sum += range.begin + i + 1;
    cost.push_back(sum);
  });
  EXPECT_EQ(cost, std::vector<int64_t>(4, 32 * 33 / 2 / 4));
}

} // namespace
} // namespace meshwork::layout
