#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Named.h"
#include "lib/Schedules/Simulate.h"
#include "lib/Schedules/Verdict.h"
#include "lib/Schedules/VirtualStages.h"
#include "lib/Spec/ScheduleNames.h"
#include "test/Schedules/Cases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;

Table table(const std::string &name, int32_t ranks, int32_t microbatches,
            int32_t virtualStages = 0) {
  absl::StatusOr<Table> result = generate({.name = name,
                                           .ranks = ranks,
                                           .microbatches = microbatches,
                                           .virtualStages = virtualStages});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Table();
}

Costs costs(size_t stages, double forward, double inputGrad, double weightGrad,
            double transfer) {
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  return {all(forward), all(inputGrad), all(weightGrad), all(transfer)};
}

Timeline simulated(const Table &table, const Costs &costs) {
  absl::StatusOr<Timeline> result = simulate(table, costs);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Timeline();
}

Timeline unitTimes(const Table &table) {
  return simulated(table, costs(table.rankOf.size(), 1, 1, 1, 0));
}

int32_t mostAlive(const Timeline &timeline) {
  int32_t most = 0;
  for (const Timeline::Work &rank : timeline.ranks)
    most = std::max(most, rank.liveMicrobatches);
  return most;
}

/// The order of one rank as the papers state it: warm-up, pairs of one F and
/// one B, the rest of the B. The k-th F and B are told by functions.
template <typename Forward, typename Backward>
std::string published(int32_t all, int32_t warmup, const Forward &forward,
                      const Backward &backward) {
  std::string row;
  warmup = std::min(warmup, all);
  for (int32_t k = 0; k < warmup; ++k)
    row += text(forward(k)) + ",";
  for (int32_t k = warmup; k < all; ++k)
    row += text(forward(k)) + "," + text(backward(k - warmup)) + ",";
  for (int32_t k = all - warmup; k < all; ++k)
    row += text(backward(k)) + ",";
  row.back() = '\n';
  return row;
}

TEST(Generate, oneForwardOneBackwardIsThePublishedOrder) {
  for (int32_t ranks = 1; ranks <= 16; ++ranks)
    for (int32_t m = 1; m <= 64; ++m) {
      std::string expected;
      for (int32_t rank = 0; rank < ranks; ++rank)
        expected += published(
            m, ranks - rank - 1,
            [&](int32_t k) { return Action{Kind::forward, rank, k}; },
            [&](int32_t k) { return Action{Kind::backward, rank, k}; });
      ASSERT_EQ(csv(table("1f1b", ranks, m)), expected) << ranks << " " << m;
    }
}

// Megatron-LM: the k-th forward of a rank is of its model chunk
// (k mod P v) / P, and of the microbatch P (k / P v) + k mod P. Backwards go
// through the chunks from the last. The warm-up is 2 (P - r - 1) + (v - 1) P.
TEST(Generate, interleavedIsThePublishedOrder) {
  for (int32_t ranks : {1, 2, 3, 4, 8, 16})
    for (int32_t chunks : {2, 3, 4})
      for (int32_t groups : {1, 2, 5}) {
        int32_t m = ranks * groups, turn = ranks * chunks;
        std::string expected;
        for (int32_t rank = 0; rank < ranks; ++rank) {
          auto action = [&](Kind kind, int32_t chunk, int32_t k) {
            return Action{kind, chunk * ranks + rank,
                          k / turn * ranks + k % ranks};
          };
          expected += published(
              m * chunks, 2 * (ranks - rank - 1) + (chunks - 1) * ranks,
              [&](int32_t k) {
                return action(Kind::forward, k % turn / ranks, k);
              },
              [&](int32_t k) {
                return action(Kind::backward, chunks - 1 - k % turn / ranks, k);
              });
        }
        ASSERT_EQ(csv(table("interleaved-1f1b", ranks, m, chunks)), expected);
      }
}

TEST(Generate, bubblesAndMemoryAreTheClosedForms) {
  for (int32_t ranks = 2; ranks <= 16; ++ranks)
    for (int32_t m = 1; m <= 64; ++m) {
      double bubble = double(ranks - 1) / (ranks - 1 + m);
      Timeline gpipe = unitTimes(table("gpipe", ranks, m));
      ASSERT_NEAR(gpipe.bubbleFraction, bubble, 1e-12);
      ASSERT_EQ(gpipe.ranks[0].liveMicrobatches, m);
      Timeline one = unitTimes(table("1f1b", ranks, m));
      ASSERT_NEAR(one.bubbleFraction, bubble, 1e-12);
      Timeline h1 = unitTimes(table("zb-h1", ranks, m));
      for (int32_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(one.ranks[static_cast<size_t>(rank)].liveMicrobatches,
                  std::min(ranks - rank, m));
      ASSERT_EQ(mostAlive(h1), std::min(ranks, m));
      if (m >= ranks) {
        ASSERT_NEAR(h1.bubbleFraction, double(ranks - 1) / (ranks - 1 + 3 * m),
                    1e-12)
            << ranks << " " << m;
      }
    }
}

// With one stage a rank it would be 1f1b, which nobody asks for by this name.
TEST(Generate, interleavedHasTwoStagesARankUnlessToldOtherwise) {
  EXPECT_EQ(csv(table("interleaved-1f1b", 4, 8)),
            csv(table("interleaved-1f1b", 4, 8, 2)));
  EXPECT_EQ(ownVirtualStages("interleaved-1f1b"), 2);
  EXPECT_EQ(ownVirtualStages("zb-v"), 2);
  for (const char *name : {"gpipe", "1f1b", "zb-h1", "auto", "my.csv"})
    EXPECT_EQ(ownVirtualStages(name), 1) << name;
}

TEST(Generate, interleavedBubbleIsTheClosedForm) {
  for (int32_t ranks = 2; ranks <= 16; ++ranks)
    for (int32_t chunks : {2, 3, 4})
      for (int32_t m = ranks; m <= 64; m += ranks)
        ASSERT_NEAR(unitTimes(table("interleaved-1f1b", ranks, m, chunks))
                        .bubbleFraction,
                    double(ranks - 1) / (ranks - 1 + m * chunks), 1e-12)
            << ranks << " " << m << " " << chunks;
}

// ZB-V has no bubble and keeps what 1F1B does, P whole microbatches; DualPipe-V
// keeps one half more.
TEST(Generate, vShapedSchedulesKeepTheirPromise) {
  for (int32_t ranks = 1; ranks <= 16; ++ranks)
    for (int32_t m : {2 * ranks, 3 * ranks + 1, 64}) {
      Timeline zbV = unitTimes(table("zb-v", ranks, m));
      ASSERT_NEAR(zbV.bubbleFraction, 0, 1e-12) << ranks << " " << m;
      ASSERT_EQ(mostAlive(zbV), 2 * ranks);
      Timeline dual = unitTimes(table("dualpipe-v", ranks, m));
      ASSERT_LE(mostAlive(dual), 2 * ranks + 1) << ranks << " " << m;
    }
}

TEST(Generate, whatSplitsBackwardSaysSo) {
  for (const NamedSchedule &named : namedSchedules()) {
    int splits = 0;
    for (const auto &rank : table(named.name, 2, 8).ranks)
      for (const Action &action : rank)
        splits += action.kind == Kind::weightGrad;
    EXPECT_EQ(splits > 0, named.splitsBackward) << named.name;
  }
}

// Few ranks, few microbatches, uneven ones: all tables are legal. Each size
// with one of the schedules in turn; MESHWORK_SCHEDULES=1 for each with all.
TEST(Generate, everySizeIsLegal) {
  const std::pair<const char *, int32_t> all[] = {
      {"gpipe", 0}, {"1f1b", 0},      {"interleaved-1f1b", 2},
      {"zb-h1", 0}, {"zb-h2", 0},     {"interleaved-1f1b", 3},
      {"zb-v", 0},  {"dualpipe-v", 0}};
  bool isWhole = std::getenv("MESHWORK_SCHEDULES") != nullptr;
  for (int32_t ranks = 1; ranks <= 16; ++ranks)
    for (int32_t m = 1; m <= 64; ++m)
      for (int32_t i = 0; i < std::ssize(all); ++i) {
        if (!isWhole && i != (ranks + 3 * m) % std::ssize(all))
          continue;
        auto [name, chunks] = all[i];
        absl::Status verdict = judge(table(name, ranks, m, chunks));
        ASSERT_TRUE(verdict.ok()) << name << " " << ranks << " " << m << "\n"
                                  << verdict;
      }
}

std::string errorOf(const Wanted &wanted) {
  absl::StatusOr<Table> result = generate(wanted);
  return result.ok() ? "" : std::string(result.status().message());
}

Chosen chosen(const Costs &costs, double memory = 0) {
  absl::StatusOr<Chosen> result = chooseVirtualStages({.name = "auto",
                                                       .ranks = 3,
                                                       .microbatches = 4,
                                                       .costs = costs,
                                                       .memory = memory});
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(judge(result->table, {.memory = result->memory}), absl::OkStatus());
  return *std::move(result);
}

double endOf(const Chosen &chosen) {
  return simulate(chosen.table, chosen.costs)->makespan;
}

// More stages fill the pipeline sooner, and send more often.
TEST(Generate, autoChoosesTheNumberOfVirtualStages) {
  Chosen free = chosen(evenCosts(3, 4, 4, 4, 0));
  EXPECT_GT(free.table.rankOf.size(), 3u);
  EXPECT_LT(endOf(free), 3 * 4 * 4 + 2 * 4 * 2);
  EXPECT_EQ(free.costs.forward[0] * double(free.table.rankOf.size()), 3 * 4);
  EXPECT_EQ(chosen(evenCosts(3, 4, 4, 4, 9)).table.rankOf.size(), 3u);
  Costs uneven = evenCosts(3, 4, 4, 4, 0);
  uneven.weightGrad[1] = 5;
  EXPECT_EQ(chosen(uneven).table.rankOf.size(), 3u);
  // One whole share is two halves, or four quarters.
  Chosen small = chosen(evenCosts(3, 4, 4, 4, 0), 1);
  EXPECT_EQ(small.memory * 3, double(small.table.rankOf.size()));
}

// A spec may name them all.
TEST(Generate, everyNameHasATable) {
  for (const auto &word : spec::words<spec::Schedule>())
    EXPECT_EQ(errorOf({.name = word.text, .ranks = 2, .microbatches = 2}), "")
        << word.text;
}

TEST(Generate, refusesWithALegalNeighbour) {
  EXPECT_THAT(errorOf({.name = "2f2b"}),
              HasSubstr("found the schedule \"2f2b\", expected gpipe, 1f1b, "
                        "interleaved-1f1b, zb-h1, zb-h2, zb-v, dualpipe-v "
                        "or auto, or a CSV file"));
  EXPECT_THAT(errorOf({.name = "zb-v", .virtualStages = 3}),
              HasSubstr("found 3 virtual stages a rank, expected 2"));
  EXPECT_THAT(errorOf({.ranks = 0}), HasSubstr("expected 1 to 16384"));
  EXPECT_THAT(errorOf({.microbatches = -1}), HasSubstr("at least 1"));
  EXPECT_THAT(errorOf({.ranks = 16384, .microbatches = 1 << 30}),
              HasSubstr("forward actions in all"));
  EXPECT_THAT(errorOf({.ranks = 8, .microbatches = 8, .memory = 7}),
              HasSubstr("1f1b keeps 8 microbatches (counted in virtual stages) "
                        "at once, more than the memory limit 7; allow 8"));
  EXPECT_THAT(errorOf({.name = "auto", .virtualStages = 2, .memory = 1}),
              HasSubstr("expected a memory limit of at least 2"));
  EXPECT_THAT(errorOf({.ranks = 2, .costs = costs(3, 1, 1, 1, 0)}),
              HasSubstr("found costs of 3 virtual stages, expected 2"));
  EXPECT_THAT(errorOf({.costs = costs(1, -1, 1, 1, 0)}),
              HasSubstr("expected times of 0 or more"));
}

} // namespace
} // namespace meshwork::schedules
