// Bubble rates with the action times that Qi et al. profiled, against those
// that they publish: "Zero Bubble Pipeline Parallelism", arXiv 2401.10241,
// tables 5 and 9. A rate is the idle part of the longest stage.
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Simulate.h"

#include "gtest/gtest.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

struct Profile {
  int32_t stages, microbatches;
  double forward, inputGrad, weightGrad, transfer;
  double oneForwardOneBackward, zbH1, zbH2;
};

constexpr Profile profiles[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083},
    {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444},
    {8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698},
    {8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294},
    {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672},
};

/// Virtual stages have equal parts of what a stage does.
Costs costsOf(const Profile &profile, int32_t chunks = 1) {
  auto stages = static_cast<size_t>(profile.stages * chunks);
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  return {all(profile.forward / chunks), all(profile.inputGrad / chunks),
          all(profile.weightGrad / chunks), all(profile.transfer)};
}

Table table(const Profile &profile, const std::string &name, int32_t chunks = 1,
            double memory = 0) {
  absl::StatusOr<Table> result = generate({.name = name,
                                           .ranks = profile.stages,
                                           .microbatches = profile.microbatches,
                                           .virtualStages = chunks,
                                           .costs = costsOf(profile, chunks),
                                           .memory = memory});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Table();
}

double bubbleOf(const Timeline &line) {
  double longest = 0, bubble = 1;
  for (size_t rank = 0; rank < line.ranks.size(); ++rank)
    if (double span =
            line.spans[rank].back().end - line.spans[rank].front().begin;
        span > longest) {
      longest = span;
      bubble = 1 - line.ranks[rank].busy / span;
    }
  return bubble;
}

double bubble(const Profile &profile, const std::string &name,
              int32_t chunks = 1, double memory = 0) {
  absl::StatusOr<Timeline> line =
      simulate(table(profile, name, chunks, memory), costsOf(profile, chunks));
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? bubbleOf(*line) : 1;
}

TEST(Profiled, bubblesAreThePublishedOnes) {
  for (const Profile &profile : profiles) {
    EXPECT_NEAR(bubble(profile, "1f1b"), profile.oneForwardOneBackward, 1e-4);
    EXPECT_NEAR(bubble(profile, "zb-h1"), profile.zbH1, 1e-4);
    EXPECT_NEAR(bubble(profile, "zb-h2"), profile.zbH2, 1e-4);
  }
}

} // namespace
} // namespace meshwork::schedules
