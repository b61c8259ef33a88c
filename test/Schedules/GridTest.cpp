#include "lib/Schedules/Grid.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Svg.h"
#include "test/Schedules/Cases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string drawn(const Table &table, const Costs &costs,
                  const GridOptions &options = {}) {
  absl::StatusOr<Timeline> timeline = simulate(table, costs);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? grid(table, *timeline, options) : "";
}

TEST(Grid, namesWorkWhereThereIsRoom) {
  EXPECT_EQ(drawn(oneFOneB(2, 2), evenCosts(2, 1, 1, 1, 0)),
            "rank 0 F0 F1 ......B0--- ...B1--- \n"
            "rank 1 ...F0 B0--- F1 B1--- ......\n"
            "a column is 0.333333 of time, a point is idle\n");
}

TEST(Grid, fillsWithLettersThenCuts) {
  Costs costs = evenCosts(2, 1, 1, 1, 0);
  std::string narrow = drawn(oneFOneB(2, 8), costs, {.columns = 40});
  EXPECT_THAT(narrow, HasSubstr("rank 0 FF...Bb"));
  EXPECT_THAT(narrow, Not(HasSubstr("cut")));
  std::string cut = drawn(oneFOneB(2, 60), costs, {.columns = 40});
  EXPECT_THAT(cut, HasSubstr("; cut at "));
  EXPECT_EQ(cut.find('\n'), 40);
}

TEST(Grid, leavesRanksOutAndSaysSo) {
  std::string text =
      drawn(oneFOneB(5, 2), evenCosts(5, 1, 1, 1, 0), {.rows = 2});
  EXPECT_THAT(text, HasSubstr("\n(ranks 2 to 4 are left out)\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 2 ")));
}

TEST(Grid, whatStartsTogetherStandsSideBySide) {
  absl::StatusOr<Table> table = parseCsv("0F0,(0B0;0F1)OVERLAP_F_B,0B1", "");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(drawn(*table, evenCosts(1, 1, 1, 1, 0)),
              HasSubstr("rank 0 F0 B0-- F1  B1--- "));
}

TEST(Grid, worksWithoutTime) {
  EXPECT_EQ(drawn(oneFOneB(1, 1), evenCosts(1, 0, 0, 0, 0)), "rank 0 \n");
}

TEST(Svg, drawsAllAndEscapes) {
  Table table = oneFOneB(2, 2);
  absl::StatusOr<Timeline> timeline = simulate(table, evenCosts(2, 1, 1, 1, 0));
  ASSERT_TRUE(timeline.ok());
  std::string picture = svg(table, *timeline, "<script>\x1b&\"\n");
  EXPECT_THAT(picture, HasSubstr("&lt;script&gt;\\x1b&amp;&quot;\\n"));
  EXPECT_THAT(picture, HasSubstr("<title>1B1, rank 1: 5 to 7</title>"));
  size_t count = 0;
  for (size_t at = 0;
       (at = picture.find("<rect class=\"F\"", at)) != picture.npos; ++at)
    ++count;
  EXPECT_EQ(count, 4);
}

} // namespace
} // namespace meshwork::schedules
