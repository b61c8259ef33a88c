#include "lib/Schedules/Verdict.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Simulate.h"
#include "test/Schedules/Cases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;

Table tableOf(std::string_view text) {
  absl::StatusOr<Table> table = parseCsv(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : Table();
}

std::string faultsOf(const Table &table, const JudgeOptions &options = {}) {
  return std::string(judge(table, options).message());
}

std::string faultsOf(std::string_view text, const JudgeOptions &options = {}) {
  return faultsOf(tableOf(text), options);
}

TEST(Verdict, tablesOfTheDefinitionsAreLegal) {
  for (int32_t ranks : {1, 2, 3, 8})
    for (int32_t microbatches : {1, 2, 7, 16})
      for (const Table &table :
           {oneFOneB(ranks, microbatches), gpipe(ranks, microbatches)}) {
        EXPECT_EQ(faultsOf(table), "");
        EXPECT_EQ(faultsOf(withTransfers(table)), "");
      }
}

TEST(Verdict, anyMapOfStagesIsOne) {
  EXPECT_EQ(faultsOf("0F0,3F0,3I0,0I0,3W0,0W0\n1F0,2F0,2B0,1B0"), "");
  EXPECT_EQ(faultsOf("0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
                     "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0"),
            "");
}

TEST(Verdict, workStandsInItsOrder) {
  EXPECT_EQ(faultsOf("0B0,0F0,0W1,0I1,0F1"),
            "rank 0, action 1 (0B0): expected after 0F0, which is action 2\n"
            "rank 0, action 3 (0W1): expected after 0I1, which is action 4\n"
            "rank 0, action 4 (0I1): expected after 0F1, which is action 5");
  EXPECT_EQ(faultsOf("1F0,0F0,0B0,1B0"),
            "rank 0, action 1 (1F0): expected after 0F0, which is action 2\n"
            "rank 0, action 3 (0B0): expected after 1B0, which is action 4");
}

TEST(Verdict, workStandsOnce) {
  EXPECT_EQ(faultsOf("0F0,0B0,0F0,0F1,0I1,0F2,0B2,0W2,0F3"),
            "rank 0, action 3 (0F0): stands twice, expected once: first as "
            "rank 0, action 1\n"
            "rank 0: 0W1 is missing\n"
            "rank 0, action 7 (0B2): makes both gradients, expected no 0W2\n"
            "rank 0: 0B3 is missing, or I and W instead");
}

TEST(Verdict, rankOfIsObeyed) {
  Table table = oneFOneB(2, 1);
  table.rankOf = {0, 0};
  EXPECT_THAT(faultsOf(table), HasSubstr("rank 1, action 1 (1F0): stage 1 is "
                                         "on rank 0, expected there"));
}

TEST(Verdict, transfersMatchBothWays) {
  constexpr std::string_view legal =
      "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0";
  EXPECT_EQ(faultsOf(legal), "");
  EXPECT_EQ(faultsOf("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0"),
            "rank 0, action 2 (0RECV_B0): rank 1 has no 1SEND_B0, expected one "
            "to match\n"
            "rank 1, action 1 (1RECV_F0): rank 0 has no 0SEND_F0, expected one "
            "to match");
  EXPECT_EQ(faultsOf("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0"),
            "rank 1, action 1 (1F0): its input is never moved here, expected "
            "1RECV_F0 before, and 0SEND_F0 on rank 0");
  EXPECT_EQ(faultsOf("0SEND_F0,0F0,0B0,0RECV_B0\n1F0,1RECV_F0,1SEND_B0,1B0"),
            "rank 0, action 1 (0SEND_F0): expected after 0F0, which is action "
            "2\n"
            "rank 0, action 3 (0B0): expected after 0RECV_B0, which is action "
            "4\n"
            "rank 1, action 1 (1F0): expected after 1RECV_F0, which is action "
            "2\n"
            "rank 1, action 3 (1SEND_B0): expected after 1B0, which is action "
            "4");
  EXPECT_EQ(faultsOf("0F0,0SEND_F0,1RECV_F0,1F0,1SEND_F0,1B0,0B0"),
            "rank 0, action 2 (0SEND_F0): stages 0 and 1 are both on rank 0, "
            "expected no transfer\n"
            "rank 0, action 3 (1RECV_F0): stages 1 and 0 are both on rank 0, "
            "expected no transfer\n"
            "rank 0, action 5 (1SEND_F0): there is no stage 2 to send to");
}

TEST(Verdict, memoryCountsUntilTheWeightsGradientRan) {
  constexpr std::string_view text = "0F0,0I0,0F1,0I1,0W0,0W1";
  EXPECT_EQ(faultsOf(text, {.memory = 2}), "");
  EXPECT_EQ(faultsOf(text, {.memory = 1.5}),
            "rank 0, action 3 (0F1): exceeds the 1.5 microbatches that may be "
            "kept at once; the rank keeps up to 2");
  // Together is at once.
  EXPECT_EQ(faultsOf("0F0,0B0,0F1,0B1", {.memory = 1}), "");
  EXPECT_THAT(faultsOf("0F0,(0B0;0F1)OVERLAP_F_B,0B1", {.memory = 1}),
              HasSubstr("action 3 (0F1): exceeds"));
}

TEST(Verdict, onlyLikeStartsTogether) {
  Table table = tableOf("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0");
  table.ranks[0][1].withNext = true;
  EXPECT_EQ(faultsOf(table), ""); // The output is on its way once it is posted.
  table.ranks[0][1].withNext = false;
  table.ranks[0][0].withNext = table.ranks[1][3].withNext = true;
  EXPECT_EQ(faultsOf(table),
            "rank 0, action 1 (0F0): starts together with 0SEND_F0, expected "
            "two transfers or two of F, B, I, W\n"
            "rank 1, action 4 (1SEND_B0): starts together with the next "
            "action, but is the last");
}

TEST(Verdict, manyFaultsAreCounted) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "0B" + std::to_string(i) + ",0F" + std::to_string(i) + ",";
  std::string faults = faultsOf(text);
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 20);
  EXPECT_THAT(faults, HasSubstr("\nand 20 more errors"));
}

TEST(Verdict, noNumberIsTrusted) {
  Table legal = oneFOneB(2, 2);
  auto refused = [&](auto change, const char *needle) {
    Table table = legal;
    change(table);
    EXPECT_THAT(faultsOf(table), HasSubstr(needle));
  };
  refused([](Table &t) { t.ranks[0][0].stage = 2; },
          "rank 0, action 1 (2F0): names stage 2, expected 0 to 1");
  refused([](Table &t) { t.ranks[0][0].stage = INT32_MIN; }, "names stage");
  refused([](Table &t) { t.ranks[1][0].microbatch = INT32_MAX; },
          "names microbatch 2147483647, expected 0 to 1");
  refused([](Table &t) { t.ranks[1][0].microbatch = -1; },
          "names microbatch -1, expected 0 to 1");
  refused([](Table &t) { t.ranks[1][0].kind = Kind(99); }, "no known kind");
  refused([](Table &t) { t.rankOf[1] = 7; },
          "stage 1 is on rank 7, expected 0 to 1");
  refused([](Table &t) { t.rankOf[1] = -7; }, "stage 1 is on rank -7");
  refused([](Table &t) { t.rankOf.clear(); }, "no stage or no microbatch");
  refused([](Table &t) { t.microbatches = INT32_MAX; },
          "the table has 8 actions, expected F and B, or F, I and W, for each "
          "of 2 stages and 2147483647 microbatches");
  EXPECT_FALSE(judge(Table()).ok());
}

/// Changes one number of a table to any other, or one action's place.
void spoil(Table &table, std::mt19937 &random) {
  std::vector<Action> &rank = table.ranks[random() % table.ranks.size()];
  auto number = [&] { return static_cast<int32_t>(random() % 7) - 1; };
  if (rank.empty())
    return;
  Action &action = rank[random() % rank.size()];
  switch (random() % 8) {
  case 0:
    action.kind = static_cast<Kind>(random() % 13);
    break;
  case 1:
    action.stage = number();
    break;
  case 2:
    action.microbatch = number();
    break;
  case 3:
    action.withNext ^= true;
    break;
  case 4:
    table.rankOf[random() % table.rankOf.size()] = number();
    break;
  case 5:
    table.microbatches = number();
    break;
  case 6:
    std::swap(action, rank[random() % rank.size()]);
    break;
  default:
    rank.push_back(action);
  }
}

// Whatever the numbers are, judge and simulate answer; what is legal runs.
TEST(Verdict, anyTableIsJudged) {
  std::mt19937 random(3);
  int legal = 0;
  for (int round = 0; round < 5000; ++round) {
    Table table = randomTable(random);
    for (size_t changes = random() % 4; changes > 0; --changes)
      spoil(table, random);
    JudgeOptions options{.memory = double(random() % 5),
                         .copies = static_cast<int32_t>(random() % 3),
                         .transfersInOrder = random() % 2 == 0};
    absl::Status status = judge(table, options);
    bool runs =
        simulate(table, evenCosts(table.rankOf.size(), 1, 1, 1, 1)).ok();
    ASSERT_TRUE(runs || !status.ok()) << csv(table);
    legal += status.ok();
  }
  EXPECT_GT(legal, 200);
}

} // namespace
} // namespace meshwork::schedules
