// What a run prints of its steps.
#include "runtime/rank/Report.h"
#include "lib/Plan/PlanFile.h"
#include "test/Plan/TestPlan.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>

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
  Reporter report((*file)->plan(), options, {});
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

// By default the first step, the last, and one each ten seconds.
TEST(Report, LinesByTimeHaveClockMemoryAndEta) {
  auto file = plan::PlanFile::open(writePlan(tinyPlan(), "timed-plan"));
  ASSERT_TRUE(file.ok()) << file.status();
  ReportOptions options{};
  options.steps = 100;
  options.plainLines = true;
  Reporter report((*file)->plan(), options, {});
  StepReport step{};
  step.stepMs = 2500;
  testing::internal::CaptureStdout();
  for (step.step = 0; step.step < options.steps; ++step.step)
    EXPECT_TRUE(report.onStep(step).ok());
  std::string text = testing::internal::GetCapturedStdout();
  std::vector<int> expected, found;
  for (int i = 0; i < 100; i += 4)
    expected.push_back(i);
  expected.push_back(99);
  std::regex line("step ([0-9]+)/100  loss .*  2500.0 ms  [0-9]+ tokens/s  "
                  "[0-9.]+ MiB  eta ([0-9:]+)  [0-9]{2}:[0-9]{2}:[0-9]{2}\n");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end;
       ++at) {
    found.push_back(std::stoi((*at)[1]));
    if (found.back() == 96) // three steps of 2.5 s
      EXPECT_EQ((*at)[2], "0:08");
  }
  EXPECT_EQ(found, expected) << text;
}

TEST(Report, MetricsHaveShapes) {
  auto file = plan::PlanFile::open(writePlan(tinyPlan(), "metrics-plan"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::string path = testing::TempDir() + "shaped-metrics.jsonl";
  std::remove(path.c_str());
  auto log = LineLog::open(path, metricsBegin);
  ASSERT_TRUE(log.ok()) << log.status();
  ReportOptions options{};
  options.steps = 1;
  options.plainLines = true;
  Reporter report((*file)->plan(), options,
                  {std::make_unique<LineLog>(*std::move(log))});
  StepReport step{};
  step.metrics = {{"one", {}, {0.5f}},
                  {"load", {2, 3}, {1, 2, 3, 4, 5, INFINITY}}};
  testing::internal::CaptureStdout();
  EXPECT_TRUE(report.onStep(step).ok());
  report.finish();
  std::string line = testing::internal::GetCapturedStdout(), text;
  EXPECT_NE(line.find("one 0.5"), std::string::npos) << line;
  EXPECT_EQ(line.find("load"), std::string::npos) << line;
  std::getline(std::ifstream(path), text);
  EXPECT_NE(text.find(R"("one":0.5,"load":[[1,2,3],[4,5,"Infinity"]])"),
            std::string::npos)
      << text;
}

} // namespace
} // namespace meshwork::runtime::test
