// A state in the host's memory on a GPU: fetched and put back by streams of its
// own, beside the update.
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Runtime/cuda/FaultyPlan.h"
#include <filesystem>
#include <gtest/gtest.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

plan::PlanT momentumPlan(bool onHost, uint32_t ranks) {
  plan::PlanT plan = faultyPlan({true, /*never*/ 1000, "trap;\n"}, ranks);
  plan.source_ir = "module {}";
  addMomentum(plan, onHost);
  return plan;
}

RunOptions optionsFor(const plan::PlanT &plan, uint64_t steps) {
  RunOptions options;
  options.plan = writePlan(plan, "host.mwplan");
  options.data = {writeText(5000, "text")};
  options.tokenizer = "bytes";
  options.steps = steps;
  options.shareGpu = true;
  options.transport = RunOptions::Transport::threads;
  options.save = temporary("host.safetensors");
  return options;
}

std::string saved(const RunOptions &options) {
  absl::Status status = run(options);
  EXPECT_TRUE(status.ok()) << status;
  return readFile(options.save);
}

TEST(HostCopy, GivesTheSameBits) {
  for (uint32_t ranks : {1, 2}) {
    std::string expected = saved(optionsFor(momentumPlan(false, ranks), 3));
    for (bool synchronous : {false, true}) {
      RunOptions options = optionsFor(momentumPlan(true, ranks), 3);
      options.synchronous = synchronous;
      EXPECT_TRUE(saved(options) == expected) << ranks << synchronous;
    }
  }
}

TEST(HostCopy, IsSavedAndLoaded) {
  plan::PlanT plan = momentumPlan(true, 2);
  std::string expected = saved(optionsFor(plan, 4));
  RunOptions first = optionsFor(plan, 2);
  first.checkpoint = temporary("host-state");
  std::filesystem::remove_all(first.checkpoint);
  (void)saved(first);
  RunOptions second = optionsFor(plan, 4);
  second.resume = first.checkpoint;
  EXPECT_TRUE(saved(second) == expected);
}

/// Told before anything is taken.
TEST(HostCopy, NeedsTheHostsMemory) {
  plan::PlanT plan = momentumPlan(true, 2);
  plan.programs[0]->host_bytes = uint64_t{1} << 50;
  absl::Status status = run(optionsFor(plan, 1));
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::noResources));
  EXPECT_NE(
      status.message().find("the plan keeps 2048.0 TiB in the host's memory"),
      std::string::npos)
      << status;
}

TEST(HostCopy, HasATrackInTheTrace) {
  RunOptions options = optionsFor(momentumPlan(true, 1), 2);
  options.trace = temporary("host.trace");
  options.traceSteps = 1;
  (void)saved(options);
  std::string trace = readFile(options.trace);
  for (const char *track : {"\"tid\":2", "\"tid\":3"})
    EXPECT_NE(trace.find(track), std::string::npos) << track;
}

} // namespace
} // namespace meshwork::runtime::test
