// Whole runs of plans that a test made.
#pragma once

#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Plan/TestPlan.h"
#include <gtest/gtest.h>
#include <unistd.h>

namespace meshwork::runtime::test {

/// A run of the tiny plan over a small text.
class RunCase : public ::testing::Test {
protected:
  RunOptions options;
  void SetUp() override {
    options.data = {plan::test::writeText(5000, "text")};
    options.tokenizer = "bytes";
    options.steps = 3;
    options.learningRate.rate = 0.5;
    options.save = plan::test::temporary("out.safetensors");
  }
  /// A path in the test's folder where nothing is.
  static std::string fresh(const std::string &name) {
    ::unlink(plan::test::temporary(name).c_str());
    return plan::test::temporary(name);
  }
  absl::Status runPlan(const plan::PlanT &plan) {
    options.plan = plan::test::writePlan(plan, "plan");
    return run(options);
  }
  /// The bytes of the weights after a run.
  std::string saved(const plan::PlanT &plan) {
    absl::Status status = runPlan(plan);
    EXPECT_TRUE(status.ok()) << status;
    return plan::test::readFile(options.save);
  }
  void expectExit(const plan::PlanT &plan, int code, const std::string &text) {
    absl::Status status = runPlan(plan);
    EXPECT_EQ(exitCodeOf(status), code) << status;
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos)
        << "expected: " << text << "\nfound: " << status.message();
  }
};

} // namespace meshwork::runtime::test
