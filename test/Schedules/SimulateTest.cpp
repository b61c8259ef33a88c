#include "lib/Schedules/Simulate.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Lower.h"
#include "test/Schedules/Cases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <ctime>

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;

Timeline simulated(const Table &table, const Costs &costs) {
  absl::StatusOr<Timeline> timeline = simulate(table, costs);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : Timeline();
}

Timeline simulated(std::string_view text, const Costs &costs) {
  absl::StatusOr<Table> table = parseCsv(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  return simulated(table.ok() ? *table : Table(), costs);
}

// (P - 1) / (P - 1 + m), and what each rank keeps.
TEST(Simulate, closedForms) {
  for (int32_t ranks : {2, 3, 4, 7, 16})
    for (int32_t microbatches : {1, 2, 3, 8, 64}) {
      Costs costs = evenCosts(size_t(ranks), 1, 1, 1, 0);
      Timeline one = simulated(oneFOneB(ranks, microbatches), costs);
      Timeline all = simulated(gpipe(ranks, microbatches), costs);
      for (const Timeline &timeline : {one, all}) {
        EXPECT_DOUBLE_EQ(timeline.makespan, 3 * (ranks - 1 + microbatches));
        EXPECT_NEAR(timeline.bubbleFraction,
                    (ranks - 1.0) / (ranks - 1 + microbatches), 1e-12);
      }
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const Timeline::Work &work = one.ranks[size_t(rank)];
        EXPECT_EQ(work.liveMicrobatches, std::min(ranks - rank, microbatches));
        EXPECT_EQ(all.ranks[size_t(rank)].liveMicrobatches, microbatches);
        EXPECT_DOUBLE_EQ(work.busy, 3 * microbatches);
      }
    }
}

TEST(Simulate, transfersDoNotBlock) {
  // Rank 0 computes on while its first output travels.
  Timeline timeline = simulated("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,"
                                "0RECV_B1,0B1\n"
                                "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,"
                                "1SEND_B1",
                                {{3, 1}, {2, 1}, {2, 1}, {4, 0}});
  auto span = [&](size_t rank, size_t position) {
    Timeline::Span span = timeline.spans[rank][position];
    return std::pair(span.begin, span.end);
  };
  EXPECT_EQ(span(0, 1), std::pair(3., 7.));   // 0SEND_F0
  EXPECT_EQ(span(0, 2), std::pair(3., 6.));   // 0F1
  EXPECT_EQ(span(1, 1), std::pair(6., 10.));  // 1RECV_F1, posted long before
  EXPECT_EQ(span(1, 2), std::pair(7., 8.));   // 1F0
  EXPECT_EQ(span(0, 5), std::pair(14., 18.)); // 0B0
  EXPECT_EQ(span(0, 6), std::pair(18., 22.)); // 0RECV_B1, posted after 0B0
  EXPECT_EQ(timeline.makespan, 26);
  EXPECT_EQ(timeline.ranks[1].busy, 6);
  EXPECT_EQ(timeline.bubbleFraction, 1 - 14. / 26);
}

// Without SEND and RECV the times are those of receives posted in time.
TEST(Simulate, transfersMayBeLeftOut) {
  Timeline timeline =
      simulated("0F0,0B0\n1F0,1B0", {{1, 1}, {1, 1}, {1, 1}, {5, 0}});
  EXPECT_EQ(timeline.makespan, 1 + 5 + 1 + 2 + 5 + 2);
  timeline = simulated("0F0,1F0,1B0,0B0", {{1, 1}, {1, 1}, {1, 1}, {5, 0}});
  EXPECT_EQ(timeline.makespan, 6); // One rank holds both.
}

TEST(Simulate, whatStartsTogetherEndsTogether) {
  Timeline timeline =
      simulated("0F0,(0B0;0F1)OVERLAP_F_B,0B1", {{3}, {1}, {1}, {0}});
  EXPECT_EQ(timeline.spans[0][1].begin, 3);
  EXPECT_EQ(timeline.spans[0][1].end, 8);
  EXPECT_EQ(timeline.spans[0][2].end, 8);
  EXPECT_EQ(timeline.makespan, 10);
  EXPECT_EQ(timeline.ranks[0].busy, 10);
  EXPECT_EQ(timeline.ranks[0].liveMicrobatches, 2);
}

TEST(Simulate, stagesOfOneRankAreCountedApart) {
  Timeline timeline = simulated("0F0,1F0,0F1,1F1,1I0,0I0,1B1,0B1,1W0,0W0",
                                evenCosts(2, 1, 2, 4, 0));
  EXPECT_EQ(timeline.ranks[0].liveMicrobatches, 4);
  EXPECT_EQ(timeline.stages[0].liveMicrobatches, 2);
  EXPECT_EQ(timeline.stages[1].busy, 14);
}

// One graph for several costs, with and without transfers, tells the same bits.
TEST(Simulate, makespanOfManyCosts) {
  for (std::string name : {"1f1b", "interleaved-1f1b", "zb-h1", "dualpipe-v"}) {
    absl::StatusOr<Table> made =
        generate({.name = name, .ranks = 4, .microbatches = 9});
    ASSERT_TRUE(made.ok()) << made.status();
    for (const Table &table : {*made, *lower(*made)}) {
      Makespan makespan(table);
      for (double scale : {1.0, 0.3, 7.0}) {
        Costs costs =
            evenCosts(table.rankOf.size(), 1.1 * scale, 0.9, 0.7, 0.1 / scale);
        costs.forward.back() *= 1.5;
        Timeline timeline = simulated(table, costs);
        EXPECT_EQ(makespan.of(costs), timeline.makespan) << name;
        double busiest = 0;
        for (const Timeline::Work &rank : timeline.ranks)
          busiest = std::max(busiest, rank.busy);
        EXPECT_EQ(makespan.busiest(costs), busiest) << name;
      }
    }
  }
}

TEST(Simulate, refusesWhatItCannotRun) {
  auto errorOf = [](const Table &table, const Costs &costs) {
    return std::string(simulate(table, costs).status().message());
  };
  Costs costs = evenCosts(2, 1, 1, 1, 0);
  Table hangs = oneFOneB(2, 2);
  std::swap(hangs.ranks[1][0], hangs.ranks[1][1]);
  EXPECT_THAT(errorOf(hangs, costs), HasSubstr("cannot run to its end"));
  Table lacks = withTransfers(oneFOneB(2, 2));
  lacks.ranks[0].erase(lacks.ranks[0].begin() + 1);
  EXPECT_THAT(errorOf(lacks, costs), HasSubstr("cannot run to its end"));
  EXPECT_THAT(errorOf(Table(), costs), HasSubstr("no stage"));
  EXPECT_THAT(errorOf(oneFOneB(3, 1), costs),
              HasSubstr("2 times of a kind, expected one for each of the 3"));
  for (double time : {-1.0, double(NAN), double(INFINITY)}) {
    costs.transfer[1] = time;
    EXPECT_THAT(errorOf(oneFOneB(2, 1), costs), HasSubstr("expected a finite"));
  }
  EXPECT_THAT(errorOf(oneFOneB(2, 2), evenCosts(2, 1e308, 1e308, 0, 0)),
              HasSubstr("no finite time"));
}

// Linear in the actions: 16 384 ranks are no other work than 16.
TEST(Simulate, manyRanks) {
  std::clock_t start = std::clock();
  Table table = oneFOneB(16384, 8);
  Timeline timeline = simulated(table, evenCosts(16384, 1, 1, 1, 0));
  EXPECT_EQ(timeline.makespan, 3 * (16383 + 8));
  // Well under a second of a processor; quadratic would be minutes.
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

} // namespace
} // namespace meshwork::schedules
