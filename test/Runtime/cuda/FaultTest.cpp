// What a run on a GPU says when a kernel fails, or a loss is not finite.
#include "absl/strings/str_cat.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Plan/TestPlan.h"
#include <gtest/gtest.h>
#include <set>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

/// An entry point that takes what Plan.fbs says and does `body`.
std::string entry(const plan::KernelT &kernel, const std::string &body) {
  std::string parameters;
  for (uint32_t i = 0; i < kernel.num_args; ++i)
    absl::StrAppend(&parameters, ".param .u64 p", i, ", ");
  return absl::StrCat(".visible .entry ", kernel.symbol, "(", parameters,
                      ".param .u32 adds, .param .u64 workspace)\n{\n", body,
                      "ret;\n}\n");
}

/// The tiny plan with kernels that leave everything as it is, but for one.
std::string planWith(const char *symbol, const std::string &body) {
  plan::PlanT plan = tinyGpuPlan({.ranks = 1, .microbatches = 2});
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n";
  std::set<std::string> known;
  for (auto &kernel : plan.kernels)
    if (known.insert(kernel->symbol).second)
      absl::StrAppend(&text,
                      entry(*kernel, kernel->symbol == symbol ? body : ""));
  EXPECT_TRUE(known.count(symbol));
  plan.images.clear();
  plan.images.push_back(std::make_unique<plan::ImageT>());
  plan.images[0]->arch = "sm_80";
  plan.images[0]->kind = plan::ImageKind::ptx;
  plan.images[0]->code.assign(text.c_str(), text.c_str() + text.size() + 1);
  return writePlan(plan, "fault.mwplan");
}

absl::Status runPlan(const std::string &plan, bool synchronous) {
  RunOptions options;
  options.plan = plan;
  options.data = {writeText(5000, "text")};
  options.tokenizer = "bytes";
  options.steps = 1;
  options.synchronous = synchronous;
  options.transport = RunOptions::Transport::threads;
  return run(options);
}

void expectHas(const absl::Status &status, const std::string &part) {
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
      << "expected: " << part << "\nfound: " << status;
}

TEST(CudaFault, IsNamedWhereInstructionsAreWaitedFor) {
  absl::Status status = runPlan(planWith("embedding_0", "trap;\n"), true);
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::internal));
  expectHas(status, "rank 0, instruction \"wte\" (Embedding, forward[0])");
  expectHas(status, "CUDA_ERROR_LAUNCH_FAILED");
}

TEST(CudaFault, TellsHowToFindItElsewhere) {
  absl::Status status = runPlan(planWith("embedding_0", "trap;\n"), false);
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::internal));
  expectHas(status, "--synchronous");
  expectHas(status, "CUDA_ERROR_LAUNCH_FAILED");
}

TEST(CudaFault, ALossThatIsNotFiniteIsTracedToItsInstruction) {
  // Fresh memory of the emulator is NaN, and nothing writes x.
  absl::Status status = runPlan(planWith("embedding_0", ""), false);
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::badData));
  expectHas(status, "all ranks stopped before the optimizer");
  expectHas(status,
            "in \"x\", written by instruction \"wte\" (Embedding, forward[0])");
}

TEST(CudaFault, CodeThatDoesNotLoadIsRefusedAtTheStart) {
  absl::Status status =
      runPlan(planWith("embedding_0", "frobnicate.s32 %r1;\n"), false);
  EXPECT_EQ(exitCodeOf(status), static_cast<int>(ExitCode::unavailable));
  expectHas(status, "no code of the plan runs on GPU 0");
  expectHas(status, "CUDA_ERROR_INVALID_PTX");
}

} // namespace
} // namespace meshwork::runtime::test
