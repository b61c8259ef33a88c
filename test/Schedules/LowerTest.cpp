#include "lib/Schedules/Lower.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Simulate.h"
#include "lib/Schedules/Verdict.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <string>

namespace meshwork::schedules {
namespace {

Table table(const std::string &name, int32_t ranks, int32_t microbatches,
            int32_t virtualStages = 0) {
  absl::StatusOr<Table> result = generate({.name = name,
                                           .ranks = ranks,
                                           .microbatches = microbatches,
                                           .virtualStages = virtualStages});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Table();
}

Table lowered(const Table &table, const Costs &costs = {}) {
  absl::StatusOr<Table> result = lower(table, costs);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Table();
}

TEST(Lower, sendsAndReceivesOverEachEdge) {
  EXPECT_EQ(csv(lowered(table("1f1b", 2, 2))),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
}

TEST(Lower, keepsTheTransfersThatAreThere) {
  Table once = lowered(table("zb-v", 4, 8));
  EXPECT_EQ(lowered(once), once);
}

Costs someCosts(size_t stages) {
  Costs costs;
  for (size_t stage = 0; stage < stages; ++stage) {
    costs.forward.push_back(3 + double(stage % 3));
    costs.inputGrad.push_back(4 - double(stage % 2));
    costs.weightGrad.push_back(2 + double(stage % 4));
    costs.transfer.push_back(0.5);
  }
  return costs;
}

// All names and sizes: no rank waits for ever, with transfers in order too, and
// no transfer comes later than in a table whose transfers are free to.
TEST(Lower, costsNoTimeAndCannotHang) {
  for (const char *name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1",
                           "zb-h2", "zb-v", "dualpipe-v"})
    for (int32_t ranks : {1, 2, 3, 4, 8})
      for (int32_t m : {1, 2, 5, 8, 17}) {
        Table plain = table(name, ranks, m,
                            std::string(name) == "interleaved-1f1b" ? 3 : 0);
        Costs costs = someCosts(plain.rankOf.size());
        Table full = lowered(plain, costs);
        for (bool inOrder : {false, true}) {
          absl::Status verdict = judge(full, {.transfersInOrder = inOrder});
          ASSERT_TRUE(verdict.ok()) << name << " " << ranks << " " << m << "\n"
                                    << verdict;
        }
        ASSERT_NEAR(simulate(full, costs)->makespan,
                    simulate(plain, costs)->makespan, 1e-9)
            << name << " " << ranks << " " << m;
      }
}

Costs costsOf(size_t stages, double inputGrad, double weightGrad,
              double transfer) {
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  return {all(1), all(inputGrad), all(weightGrad), all(transfer)};
}

// Times are not known, or known wrongly: hardly anybody waits for a receive
// that is posted late.
TEST(Lower, timesMayBeOthers) {
  for (const char *name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1",
                           "zb-h2", "zb-v", "dualpipe-v"})
    for (int32_t ranks : {2, 4, 8})
      for (int32_t m : {4, 9, 32})
        for (double transfer : {0.0, 0.02, 0.3}) {
          Table plain = table(name, ranks, m,
                              std::string(name) == "interleaved-1f1b" ? 3 : 0);
          size_t stages = plain.rankOf.size();
          Costs costs = costsOf(stages, 1.2, 0.7, transfer);
          double best = simulate(plain, costs)->makespan;
          for (const Costs &given : {Costs(), costsOf(stages, 1, 1, 0)})
            ASSERT_LE(simulate(lowered(plain, given), costs)->makespan,
                      1.002 * best)
                << name << " " << ranks << " " << m << " " << transfer;
        }
}

// A receive is posted while its rank does one other thing, not at the front.
TEST(Lower, receivesAreNotFrontLoaded) {
  for (const std::vector<Action> &row : lowered(table("1f1b", 8, 32)).ranks) {
    int32_t posted = 0;
    for (const Action &action : row) {
      bool receives =
          action.kind == Kind::recvForward || action.kind == Kind::recvBackward;
      posted += receives ? 1 : 0;
      if (isCompute(action.kind) &&
          (action.stage > 0 || action.kind == Kind::backward))
        posted -= action.stage < 7 || action.kind == Kind::forward;
      EXPECT_LE(posted, 2);
    }
  }
}

// Work that takes no time has an order nevertheless.
TEST(Lower, costsMayBeNothing) {
  std::vector<double> none(8, 0);
  for (const char *name : {"zb-v", "dualpipe-v"}) {
    Table full = lowered(table(name, 4, 9), {none, none, none, none});
    EXPECT_TRUE(judge(full, {.transfersInOrder = true}).ok());
  }
}

TEST(Lower, aLargeTable) {
  Table full = lowered(table("interleaved-1f1b", 16, 128, 4));
  EXPECT_TRUE(judge(full).ok());
  EXPECT_TRUE(judge(full, {.transfersInOrder = true}).ok());
}

TEST(Lower, refusesWhatCannotRun) {
  Table wrong = *parseCsv("0B0,0F0", "t.csv");
  EXPECT_FALSE(lower(wrong).ok());
}

} // namespace
} // namespace meshwork::schedules
