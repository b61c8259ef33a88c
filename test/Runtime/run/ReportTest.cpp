// What a run prints of its steps.
#include "runtime/rank/Report.h"
#include "lib/Plan/PlanFile.h"
#include "test/Plan/TestPlan.h"
#include <cmath>
#include <gtest/gtest.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

// The sign of what is no number says nothing.
TEST(Report, NoNumberHasNoSign) {
  auto file = plan::PlanFile::open(writePlan(tinyPlan(), "report-plan"));
  ASSERT_TRUE(file.ok()) << file.status();
  ReportOptions options{};
  options.steps = 1;
  options.plainLines = true;
  Reporter report((*file)->plan(), options, nullptr);
  StepReport step{};
  step.loss = std::copysign(std::nanf(""), -1.0f);
  step.gradNorm = step.loss;
  step.stepMs = 1;
  testing::internal::CaptureStdout();
  EXPECT_TRUE(report.onStep(step).ok());
  report.finish();
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("loss nan  norm nan"), std::string::npos) << text;
  EXPECT_EQ(text.find("-nan"), std::string::npos) << text;
}

} // namespace
} // namespace meshwork::runtime::test
