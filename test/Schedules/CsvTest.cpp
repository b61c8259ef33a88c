#include "lib/Schedules/Csv.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <random>
#include <string>

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;

std::string errorOf(std::string_view text) {
  absl::StatusOr<Table> table = parseCsv(text, "t.csv");
  return table.ok() ? "" : std::string(table.status().message());
}

constexpr std::string_view twoRanks =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0I1,0W1\n"
    "1RECV_F0,1F0,1B0,(1SEND_B0;1RECV_F1)BATCH,(1F1;1B1)OVERLAP_F_B,1SEND_B1\n";

TEST(Csv, readsWhatItWrites) {
  absl::StatusOr<Table> table = parseCsv(twoRanks, "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->microbatches, 2);
  EXPECT_EQ(table->rankOf, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(table->ranks[1][4], (Action{Kind::recvForward, 1, 1, false}));
  EXPECT_TRUE(table->ranks[1][3].withNext);
  EXPECT_EQ(csv(*table), twoRanks);
}

TEST(Csv, readsPyTorchsSpellings) {
  std::string note;
  absl::StatusOr<Table> table =
      parseCsv("\xef\xbb\xbf"
               "0UNSHARD, 0F0 ,,\"0F1\",0FULL_BACKWARD0,"
               "0BACKWARD_INPUT1,0BACKWARD_WEIGHT1,,0REDUCE_GRAD,0RESHARD\r\n"
               ",1FORWARD0,1B0,(1F1; 1I1)OVERLAP_F_B,1W1,,,\r\n\r\n",
               "t.csv", &note);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(csv(*table), "0F0,0F1,0B0,0I1,0W1\n"
                         "1F0,1B0,(1F1;1I1)OVERLAP_F_B,1W1\n");
  EXPECT_EQ(note, "passed over 3 actions on parameters (GATHER, FREE, REDUCE "
                  "and PyTorch's words for them): a plan places these itself");
}

TEST(Csv, whatIsAboutParametersLeavesItsGroup) {
  std::string note;
  absl::StatusOr<Table> table =
      parseCsv("(0GATHER;0F0;1F0;1FREE)OVERLAP_F_B,(0REDUCE;0B0)OVERLAP_F_B,"
               "1B0",
               "t.csv", &note);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(csv(*table), "(0F0;1F0)OVERLAP_F_B,0B0,1B0\n");
  EXPECT_THAT(note, HasSubstr("passed over 3 actions"));
  note.clear();
  ASSERT_TRUE(parseCsv("0F0,0B0", "t.csv", &note).ok());
  EXPECT_EQ(note, "");
  EXPECT_THAT(errorOf("0GATHER,0FREE"), HasSubstr("found no action"));
}

TEST(Csv, anyRankMayHoldAnyStage) {
  absl::StatusOr<Table> table = parseCsv("0F0,2F0,2B0,0B0\n1F0,1B0", "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rankOf, (std::vector<int32_t>{0, 1, 0}));
}

TEST(Csv, anErrorSaysWhereAndWhatIsLegalThere) {
  EXPECT_EQ(errorOf("0F0,0B0\n1F0,1F1,1I0,1X1,1W0"),
            "t.csv:2: cell 4 (rank 1): found \"1X1\", expected a kind among F, "
            "B, I, W, SEND_F, RECV_F, SEND_B, RECV_B; "
            "legal here: 1F2, 1B1, 1I1, 1W0");
}

TEST(Csv, tellsAllErrorsUpToALimit) {
  std::string error =
      errorOf("0F\nF0,1GATHER7,1F9999999999\n(2F0;2B0)TOGETHER");
  EXPECT_THAT(error, HasSubstr("t.csv:1: cell 1 (rank 0): found \"0F\", "
                               "expected a microbatch at its end"));
  EXPECT_THAT(error, HasSubstr("t.csv:2: cell 1 (rank 1): found \"F0\""));
  EXPECT_THAT(error, HasSubstr("expected no microbatch"));
  EXPECT_THAT(error, HasSubstr("expected a microbatch below 1048576"));
  EXPECT_THAT(error, HasSubstr("t.csv:3: cell 1 (rank 2)"));
  std::string many;
  for (int i = 0; i < 30; ++i)
    many += "?,";
  EXPECT_THAT(errorOf(many), HasSubstr("\nt.csv: 10 more errors"));
}

TEST(Csv, stagesAndMicrobatchesMustBeThere) {
  EXPECT_THAT(errorOf(" \n"), HasSubstr("found no action"));
  EXPECT_THAT(errorOf("0F0,0B0\n\n1F0,1B0"), HasSubstr("t.csv:2: cell 1"));
  EXPECT_THAT(errorOf("0F0,0B0\n2F0,2B0"),
              HasSubstr("no rank has an F, B, I or W of stage 1"));
  EXPECT_THAT(errorOf("0F0,0B0\n0F0,0B0"),
              HasSubstr("t.csv:2: cell 1 (rank 1): found 0F0, expected an "
                        "action of another stage, rank 0 computes stage 0"));
  EXPECT_THAT(errorOf("0F0,0SEND_F0,0B0,5SEND_F0"),
              HasSubstr("cell 4 (rank 0): found 5SEND_F0, expected a stage"));
  EXPECT_THAT(errorOf("0F0,0SEND_F3,0B0"), HasSubstr("microbatch below 1"));
}

// What follows a table has room for stages x microbatches, so a short file
// cannot name many of them.
TEST(Csv, aShortFileIsASmallTable) {
  EXPECT_THAT(errorOf("0F0,0B0,0F1048575"),
              HasSubstr("the file has 2 F in all"));
  EXPECT_THAT(errorOf("0F0,0B0,65535F0"), HasSubstr("no rank has an F"));
}

// Any bytes are a table that is written and read again, or an error.
TEST(Csv, survivesAnyBytes) {
  std::mt19937 random(1);
  constexpr std::string_view bytes = "0123FBIWSENDRCV_,;()\n\"\r\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text(twoRanks);
    for (int change = random() % 4 + 1; change > 0; --change) {
      size_t at = random() % text.size(), count = random() % 3;
      std::string with(random() % 3, bytes[random() % bytes.size()]);
      text.replace(at, count, with);
    }
    if (absl::StatusOr<Table> table = parseCsv(text, "t.csv"); table.ok()) {
      absl::StatusOr<Table> again = parseCsv(csv(*table), "t.csv");
      ASSERT_TRUE(again.ok()) << text << again.status();
      ASSERT_EQ(*again, *table);
    }
  }
}

} // namespace
} // namespace meshwork::schedules
