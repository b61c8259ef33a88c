// What goes wrong in a step while the next one is already enqueued.
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Runtime/cuda/FaultyPlan.h"
#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

struct Outcome {
  absl::Status status;
  std::string metrics;
  size_t steps() const {
    return static_cast<size_t>(
        std::count(metrics.begin(), metrics.end(), '\n'));
  }
};

Outcome runFour(const plan::PlanT &plan, bool synchronous = false,
                uint32_t ranks = 1, bool sharesGpu = true) {
  RunOptions options;
  options.plan = writePlan(plan, "ahead.mwplan");
  options.data = {writeText(5000, "text")};
  options.tokenizer = "bytes";
  options.steps = 4;
  options.synchronous = synchronous;
  options.shareGpu = ranks > 1 && sharesGpu;
  options.metrics = temporary("ahead.jsonl");
  std::remove(options.metrics.c_str());
  options.transport = RunOptions::Transport::threads;
  absl::Status status = run(options);
  return {status, readFile(options.metrics)};
}

Outcome runFour(const Fault &fault, bool synchronous = false,
                uint32_t ranks = 1, bool sharesGpu = true) {
  return runFour(faultyPlan(fault, ranks), synchronous, ranks, sharesGpu);
}

void expectHas(const absl::Status &status, const std::string &part) {
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
      << "expected: " << part << "\nfound: " << status;
}

constexpr uint32_t never = 1000;

TEST(Ahead, TrainsWhereNothingFails) {
  for (uint32_t ranks : {1, 2})
    for (bool sharesGpu : {true, false}) {
      Fault none{true, never, "trap;\n"};
      Outcome outcome = runFour(none, false, ranks, sharesGpu);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.steps(), 4u);
    }
}

/// The kernel that fails is the last of its step: the host has enqueued the
/// next one when it comes to wait.
TEST(Ahead, AFaultInTheUpdateIsOfItsStep) {
  for (uint32_t ranks : {1, 2}) {
    Outcome outcome = runFour({true, ranks, "trap;\n"}, false, ranks);
    EXPECT_EQ(exitCodeOf(outcome.status), static_cast<int>(ExitCode::internal));
    expectHas(outcome.status, "CUDA_ERROR_LAUNCH_FAILED");
    // Of ranks that share a GPU each meets the fault, the other one wherever
    // it is.
    if (ranks == 1) {
      expectHas(outcome.status, "rank 0 on GPU 0: ");
      expectHas(outcome.status, "GPU 0 is not known to have ended \"");
      expectHas(outcome.status, " of step 1; the last known to have ended is ");
    }
    expectHas(outcome.status, "--synchronous");
    EXPECT_EQ(outcome.steps(), 1u) << outcome.metrics;
  }
  Outcome waited = runFour({true, 1, "trap;\n"}, true);
  EXPECT_EQ(exitCodeOf(waited.status), static_cast<int>(ExitCode::internal));
  expectHas(waited.status, "rank 0, instruction \"late\" (Launch, update[4])");
  EXPECT_EQ(waited.steps(), 1u) << waited.metrics;
}

/// Steps that ended are reported, whatever the driver says after a fault.
TEST(Ahead, AFaultInTheNextStepTakesNothingFromTheLast) {
  for (int i = 0; i < 20; ++i) {
    Outcome outcome = runFour({false, 4, "trap;\n"});
    EXPECT_EQ(exitCodeOf(outcome.status), static_cast<int>(ExitCode::internal));
    expectHas(outcome.status, "(EmbeddingGrad, forward[3]) of microbatch 0 "
                              "of step 2; the last known to have ended is");
    ASSERT_EQ(outcome.steps(), 2u) << outcome.metrics;
  }
}

TEST(Ahead, ABadLossStopsItsStepBeforeTheOptimizer) {
  Outcome outcome = runFour(
      {false, 5, "mov.f32 %f1, 0f7FC00000;\nst.global.f32 [%p], %f1;\n"});
  EXPECT_EQ(exitCodeOf(outcome.status), static_cast<int>(ExitCode::badData));
  expectHas(outcome.status, "the loss of step 2 is nan; all ranks stopped "
                            "before the optimizer");
  expectHas(outcome.status, "written by instruction \"late\"");
  EXPECT_EQ(outcome.steps(), 3u) << outcome.metrics; // with the one refused
}

TEST(Ahead, AnInfiniteNormStopsItsStepBeforeTheOptimizer) {
  for (uint32_t ranks : {1, 2}) {
    plan::PlanT plan = faultyPlan({true, never, "trap;\n"}, ranks);
    std::vector<uint8_t> &code = plan.images[0]->code;
    std::string text(code.begin(), code.end());
    // Each element of the gradient: 1 becomes 2^127.
    text.replace(text.find("0f3F800000"), 10, "0f7F000000");
    code.assign(text.begin(), text.end());
    Outcome outcome = runFour(plan, false, ranks);
    EXPECT_EQ(exitCodeOf(outcome.status), static_cast<int>(ExitCode::badData));
    expectHas(outcome.status, "the gradient norm of step 0 is inf, its loss");
    EXPECT_EQ(outcome.steps(), 1u) << outcome.metrics;
    EXPECT_NE(outcome.metrics.find(R"("grad_norm":"Infinity")"),
              std::string::npos);
  }
}

} // namespace
} // namespace meshwork::runtime::test
