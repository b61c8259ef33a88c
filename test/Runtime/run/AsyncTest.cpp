// Collectives on communication threads: the same bits as without, and what
// traces and metrics tell of them.
#include "RunCase.h"
#include "test/Runtime/FewThreads.h"
#include <filesystem>
#include <nlohmann/json.hpp>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using plan::PlanT, plan::ProgramT;

class Async : public RunCase {};

/// The gradient's all_reduce in two halves, the second one on `channel`.
PlanT halves(uint32_t first, uint32_t second) {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  uint32_t buffer = p.views[gradient]->buffer;
  uint32_t low = addView(p, buffer, plan::DType::f32, {128, 8});
  uint32_t high = addView(p, buffer, plan::DType::f32, {128, 8}, 128 * 8 * 4);
  auto &reduce = opOf<plan::CollectiveT>(*updateOf(p)[1]);
  plan::CollectiveT other = reduce;
  reduce.parts[0] = transfer(low, low);
  updateOf(p)[1]->channel = first;
  other.parts[0] = transfer(high, high);
  insert(updateOf(p), 2, "gradients, second half", other).channel = second;
  size_t at = 3;
  if (first == second)
    insert(updateOf(p), at, "wait", waitFor(first, 2));
  else {
    insert(updateOf(p), at++, "wait 1", waitFor(first, 1));
    insert(updateOf(p), at, "wait 2", waitFor(second, 1));
  }
  return plan;
}

TEST_F(Async, givesTheSameBits) {
  std::string expected = saved(tinyPlan({.ranks = 4}));
  for (auto [first, second] : {std::pair{1u, 1u}, {1u, 2u}, {8u, 3u}})
    EXPECT_TRUE(saved(halves(first, second)) == expected)
        << first << ", " << second;
}

/// A state in the host's memory, fetched and put back beside the update.
TEST_F(Async, aStateOnTheHostGivesTheSameBits) {
  auto after = [&](bool onHost, uint32_t microbatches) {
    PlanT plan = tinyPlan({.ranks = 4, .microbatches = microbatches});
    addMomentum(plan, onHost);
    return saved(plan);
  };
  std::string expected = after(/*onHost=*/false, 2);
  EXPECT_FALSE(expected == saved(tinyPlan({.ranks = 4})));
  EXPECT_TRUE(after(/*onHost=*/true, 2) == expected);
}

TEST_F(Async, aStateOnTheHostIsSavedAndLoaded) {
  PlanT plan = tinyPlan({.ranks = 2});
  plan.source_ir = "module {}";
  addMomentum(plan, /*onHost=*/true);
  options.steps = 4;
  std::string expected = saved(plan);
  options.steps = 2;
  options.checkpoint = temporary("host-state");
  std::filesystem::remove_all(options.checkpoint);
  (void)saved(plan);
  options.resume = std::exchange(options.checkpoint, "");
  options.steps = 4;
  EXPECT_TRUE(saved(plan) == expected);
}

TEST_F(Async, otherInstructionsAreRefusedByName) {
  PlanT plan = tinyPlan();
  InstructionList &update = updateOf(*plan.programs[0]);
  update[2]->channel = 3;
  insert(update, 3, "wait", waitFor(3, 1));
  expectExit(plan, 69,
             "instruction \"norm\": Matmul on channel 3: channels run "
             "collectives and copies, expected channel 0");
}

/// Whichever thread it is that the system does not give: of a rank, of its
/// team, of a channel.
TEST_F(Async, tooFewThreadsEndTheRun) {
  if (!canLimitThreads())
    GTEST_SKIP() << "needs root";
  options.save = "";
  options.plan = writePlan(halves(1, 2), "few-threads");
  options.threads = 2;
  std::filesystem::path folder =
      std::filesystem::path(options.plan).parent_path();
  for (const auto &path :
       {folder, folder / options.plan, folder / options.data[0]})
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  constexpr int ranks = 4, needed = 1 + ranks * (1 + 1 + 2);
  for (int threads = 1; threads <= needed; ++threads) {
    auto runLimited = [&] {
      limitThreads(static_cast<rlim_t>(threads));
      std::_Exit(exitCodeOf(run(options)));
    };
    int expected = threads < needed ? 71 : 0;
    EXPECT_EXIT(runLimited(), testing::ExitedWithCode(expected), "") << threads;
  }
}

TEST_F(Async, hasATrackPerChannel) {
  options.trace = temporary("trace");
  options.traceSteps = 2;
  options.profile = true;
  (void)saved(halves(1, 2));
  auto trace = nlohmann::json::parse(readFile(options.trace));
  std::map<int, int> events;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X")
      ++events[event["tid"].get<int>()];
  EXPECT_EQ(events[1], 4 * 2); // the loss, on four ranks in two steps
  EXPECT_EQ(events[2], 4 * 2);
  EXPECT_EQ(events[3], 4 * 2);
}

TEST_F(Async, aRankThatFailsEndsTheRun) {
  PlanT plan = halves(1, 2);
  plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
  setPrograms(plan, {0, 0, 1, 0});
  opOf<plan::FillT>(*onceOf(*plan.programs[1])[0]).value = INFINITY;
  expectExit(plan, 65, "written by instruction \"mean\"");
}

} // namespace
} // namespace meshwork::runtime::test
