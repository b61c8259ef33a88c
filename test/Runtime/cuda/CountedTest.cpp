// Counted repeats on a GPU: lists are cut where a turn begins, what lies
// between is captured once, and the host reads the count.
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Runtime/cuda/FaultyPlan.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

plan::PlanT plainPlan(uint32_t ranks) {
  return faultyPlan({true, /*never*/ 1000, "trap;\n"}, ranks);
}
plan::PlanT rounds(uint32_t ranks) {
  plan::PlanT plan = plainPlan(ranks);
  addRounds(plan);
  return plan;
}
plan::PlanT turns(uint32_t ranks) {
  plan::PlanT plan = plainPlan(ranks);
  addTurns(plan, ranks - 1);
  return plan;
}

RunOptions optionsFor(const plan::PlanT &plan) {
  RunOptions options;
  options.plan = writePlan(plan, "counted.mwplan");
  options.data = {writeText(5000, "text")};
  options.tokenizer = "bytes";
  options.steps = 4;
  options.shareGpu = true;
  options.transport = RunOptions::Transport::threads;
  options.metrics = temporary("counted.jsonl");
  return options;
}

std::vector<double> losses(const RunOptions &options) {
  ::unlink(options.metrics.c_str()); // Lines are added to it.
  absl::Status status = run(options);
  EXPECT_TRUE(status.ok()) << status;
  std::stringstream lines(readFile(options.metrics));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    if (auto step = nlohmann::json::parse(line); step.contains("loss"))
      losses.push_back(step["loss"]);
  EXPECT_EQ(losses.size(), 4u);
  return losses;
}

TEST(Counted, RunsAsOftenAsItsCount) {
  for (uint32_t ranks : {1, 2, 4}) {
    std::vector<double> expected = losses(optionsFor(turns(ranks)));
    for (bool synchronous : {false, true}) {
      RunOptions options = optionsFor(rounds(ranks));
      options.synchronous = synchronous;
      EXPECT_EQ(losses(options), expected) << ranks << synchronous;
    }
  }
  EXPECT_NE(losses(optionsFor(turns(2))), losses(optionsFor(plainPlan(2))));
}

TEST(Counted, IsTracedTurnByTurn) {
  RunOptions options = optionsFor(rounds(2));
  options.trace = temporary("counted.trace");
  options.traceSteps = 2;
  EXPECT_EQ(losses(options), losses(optionsFor(turns(2))));
}

TEST(Counted, MoreThanTheMostIsAnError) {
  plan::PlanT plan = rounds(4);
  opOf<plan::RepeatT>(*forwardOf(*plan.programs[0])[2]).times = 2;
  absl::Status status = run(optionsFor(plan));
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::badData));
  EXPECT_NE(status.message().find("\"rounds\": it is to run 3 times, "
                                  "expected 0 to 2"),
            std::string::npos)
      << status;
}

} // namespace
} // namespace meshwork::runtime::test
