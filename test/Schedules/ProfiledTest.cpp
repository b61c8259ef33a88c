// Bubble rates with the action times that Qi et al. profiled, against those
// that they publish: "Zero Bubble Pipeline Parallelism", arXiv 2401.10241,
// tables 5 and 9. A rate is the idle part of the longest stage.
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Simulate.h"
#include "lib/Schedules/Verdict.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace meshwork::schedules {
namespace {

struct Profile {
  int32_t stages, microbatches;
  double forward, inputGrad, weightGrad, transfer; // milliseconds
  double oneForwardOneBackward, zbH1, zbH2;
  double zb2p; // 0: not known
  /// The part of the activations that W needs: of 34 + 5 a s / h bytes for each
  /// element of a layer's input 32 (their section 4.3; a, s and h of table 3).
  double stash;
};

std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells;
  std::stringstream rest(line + ",");
  for (std::string cell; std::getline(rest, cell, ',');)
    cells.push_back(cell);
  return cells;
}

Profile profileOf(std::map<std::string, std::string> row) {
  auto number = [&](const char *name) {
    return std::strtod(row.at(name).c_str(), nullptr);
  };
  return {static_cast<int32_t>(number("stages")),
          static_cast<int32_t>(number("microbatches")),
          number("forward"),
          number("input_grad"),
          number("weight_grad"),
          number("transfer"),
          number("1f1b"),
          number("zb-h1"),
          number("zb-h2"),
          number("zb-2p"),
          32 / (34 + 5.0 * number("heads") * 1024 / number("hidden"))};
}

/// Those of the file, which `test_simulate.py` reads too.
std::vector<Profile> readProfiles() {
  std::ifstream file(MESHWORK_ZERO_BUBBLE);
  std::string line;
  std::getline(file, line);
  std::vector<std::string> names = cellsOf(line);
  std::vector<Profile> profiles;
  while (std::getline(file, line)) {
    std::vector<std::string> cells = cellsOf(line);
    std::map<std::string, std::string> row;
    for (size_t i = 0; i < names.size(); ++i)
      row[names[i]] = cells.at(i);
    profiles.push_back(profileOf(row));
  }
  return profiles;
}

const std::vector<Profile> profiles = readProfiles();

/// Virtual stages have equal parts of what a stage does.
Costs costsOf(const Profile &profile, int32_t chunks = 1) {
  auto stages = static_cast<size_t>(profile.stages * chunks);
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  return {all(profile.forward / chunks), all(profile.inputGrad / chunks),
          all(profile.weightGrad / chunks), all(profile.transfer)};
}

Table table(const Profile &profile, const std::string &name, int32_t chunks = 1,
            double memory = 0, double stash = 1) {
  absl::StatusOr<Table> result = generate({.name = name,
                                           .ranks = profile.stages,
                                           .microbatches = profile.microbatches,
                                           .virtualStages = chunks,
                                           .costs = costsOf(profile, chunks),
                                           .memory = memory,
                                           .stash = stash});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Table();
}

double bubble(const Profile &profile, const std::string &name,
              int32_t chunks = 1, double memory = 0, double stash = 1) {
  absl::StatusOr<Timeline> line = simulate(
      table(profile, name, chunks, memory, stash), costsOf(profile, chunks));
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? line->bubbleFraction : 1;
}

TEST(Profiled, bubblesAreThePublishedOnes) {
  ASSERT_EQ(profiles.size(), 12u) << MESHWORK_ZERO_BUBBLE;
  for (const Profile &profile : profiles) {
    EXPECT_NEAR(bubble(profile, "1f1b"), profile.oneForwardOneBackward, 1e-4);
    EXPECT_NEAR(bubble(profile, "zb-h1"), profile.zbH1, 1e-4);
    EXPECT_NEAR(bubble(profile, "zb-h2"), profile.zbH2, 1e-4);
  }
}

// ZB-2p: a rank may keep the activations of 2 P microbatches. The rate of the
// first profile is the least that there can be: its last stage would do nothing
// but F and I, and the last I comes back through all stages.
TEST(Profiled, autoReachesTheRatesOfZb2p) {
  for (const Profile &profile : profiles)
    if (profile.zb2p > 0)
      EXPECT_LE(bubble(profile, "auto", 1, 2.0 * profile.stages, profile.stash),
                profile.zb2p + 5e-5)
          << profile.stages << " " << profile.microbatches << " "
          << profile.forward;
}

double makespan(const Profile &profile, const Table &table, int32_t chunks) {
  absl::StatusOr<Timeline> line = simulate(table, costsOf(profile, chunks));
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? line->makespan : 0;
}

TEST(Profiled, autoIsNeverSlowerThanANamedSchedule) {
  const Profile &profile = profiles[3];
  for (auto [chunks, memory] : {std::pair(1, 1.0), {2, 16.0}, {2, 0.0}}) {
    Table best = table(profile, "auto", chunks, memory);
    double time = makespan(profile, best, chunks);
    for (const char *name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1",
                             "zb-h2", "zb-v", "dualpipe-v"})
      if (absl::StatusOr<Table> other =
              generate({.name = name,
                        .ranks = profile.stages,
                        .microbatches = profile.microbatches,
                        .virtualStages = chunks,
                        .costs = costsOf(profile, chunks),
                        .memory = memory});
          other.ok())
        EXPECT_LE(time, makespan(profile, *other, chunks) * (1 + 1e-8))
            << name << " " << chunks << " " << memory;
    EXPECT_TRUE(judge(best, {.memory = memory}).ok()) << chunks << memory;
  }
}

// A large head, and little W to fill bubbles with: here the best order for
// equal work is not the best.
TEST(Profiled, autoKnowsUnevenStages) {
  Costs costs{{1, 1, 1, 1.6},
              {1.2, 1, 1, 1.6},
              {0.3, 0.8, 0.8, 0.4},
              {0.2, 0.2, 0.2, 0}};
  auto end = [&](const std::string &name, const Costs &known) {
    absl::StatusOr<Table> found =
        generate({.name = name, .ranks = 4, .microbatches = 8, .costs = known});
    absl::StatusOr<Timeline> line = simulate(*found, costs);
    EXPECT_TRUE(line.ok()) << line.status();
    return line.ok() ? line->makespan : 0;
  };
  double best = end("auto", costs);
  for (const char *name : {"gpipe", "1f1b", "zb-h1", "zb-h2"})
    EXPECT_LE(best, end(name, costs) * (1 + 1e-8)) << name;
  EXPECT_LT(best, end("auto", {}));
}

} // namespace
} // namespace meshwork::schedules
