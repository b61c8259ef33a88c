// Plans of pipelines run: the bits of one rank, and what happens when a stage
// does not come.
#include "RunCase.h"
#include "test/Plan/PipelinePlan.h"
#include <map>
#include <nlohmann/json.hpp>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using plan::PlanT;

class Pipeline : public RunCase {};

TEST_F(Pipeline, givesTheBitsOfOneRank) {
  for (uint32_t microbatches : {1u, 4u}) {
    std::string expected = saved(tinyPlan({.microbatches = microbatches}));
    for (uint32_t stages : {2u, 3u})
      for (bool forwardFirst : {false, true})
        EXPECT_TRUE(saved(pipelinePlan({.stages = stages,
                                        .microbatches = microbatches,
                                        .forwardFirst = forwardFirst})) ==
                    expected)
            << microbatches << " microbatches, " << stages << " stages"
            << (forwardFirst ? ", all forward first" : "");
  }
}

TEST_F(Pipeline, eachReplicaHasItsOwn) {
  std::string expected = saved(tinyPlan({.ranks = 2}));
  EXPECT_TRUE(saved(pipelinePlan({.microbatches = 2, .dataParallel = 2})) ==
              expected);
}

/// Checkpoints keep the model's text.
PlanT withText(PlanT plan) {
  plan.source_ir = "module {}";
  return plan;
}

// Stages hold different parameters, or none, and go on where one rank stopped.
TEST_F(Pipeline, resumesWhatOneRankSaved) {
  PlanT one = withText(tinyPlan());
  options.steps = 4;
  std::string expected = saved(one);
  auto inTwoRuns = [&](const PlanT &first, const PlanT &second) {
    static int number = 0;
    options.checkpoint = fresh("checkpoints-" + std::to_string(++number));
    options.resume = "";
    options.steps = 2;
    (void)saved(first);
    options.resume = "auto";
    options.steps = 4;
    return saved(second);
  };
  EXPECT_TRUE(inTwoRuns(one, withText(pipelinePlan({.microbatches = 2}))) ==
              expected);
  EXPECT_TRUE(
      inTwoRuns(withText(pipelinePlan({.stages = 3, .microbatches = 2})),
                one) == expected);
}

TEST_F(Pipeline, readsAndWritesWholeTensors) {
  options.saveGradients = temporary("gradients");
  std::string expected = saved(tinyPlan());
  std::string gradients = readFile(options.saveGradients);
  options.init = temporary("start");
  writeFile(options.init, expected.data(), expected.size());
  expected = saved(tinyPlan());
  EXPECT_TRUE(saved(pipelinePlan({.microbatches = 2})) == expected);
  options.init = "";
  (void)saved(pipelinePlan({.microbatches = 2}));
  EXPECT_TRUE(readFile(options.saveGradients) == gradients);
}

TEST_F(Pipeline, hasATrackPerList) {
  options.trace = temporary("trace");
  options.traceSteps = 2;
  options.profile = true;
  (void)saved(pipelinePlan({.microbatches = 4}));
  auto trace = nlohmann::json::parse(readFile(options.trace));
  std::map<std::string, int> events;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X")
      ++events[event["cat"].get<std::string>()];
  EXPECT_EQ(events["Send"], 2 * 2 * 4); // both directions, two steps
  EXPECT_EQ(events["Receive"], 2 * 2 * 4);
}

// One for each transfer, from within the send to within its receive.
TEST_F(Pipeline, hasAnArrowFromEachSendToItsReceive) {
  options.trace = temporary("trace");
  options.traceSteps = 2;
  (void)saved(pipelinePlan({.stages = 3, .microbatches = 4}));
  auto trace = nlohmann::json::parse(readFile(options.trace));
  std::map<std::string, std::vector<nlohmann::json>> arrows;
  auto isIn = [&](const nlohmann::json &point) {
    int found = 0;
    for (const auto &event : trace["traceEvents"])
      found += event["ph"] == "X" && event["pid"] == point["pid"] &&
               event["tid"] == point["tid"] &&
               event["cat"] == (point["ph"] == "s" ? "Send" : "Receive") &&
               event["ts"].get<double>() <= point["ts"].get<double>() + 0.001 &&
               point["ts"].get<double>() <=
                   event["ts"].get<double>() + event["dur"].get<double>();
    return found >= 1;
  };
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f") {
      EXPECT_TRUE(isIn(event)) << event;
      arrows[event["id"].get<std::string>()].push_back(event);
    }
  EXPECT_EQ(arrows.size(),
            2u * 2 * 2 * 4); // steps, borders, ways, microbatches
  for (const auto &[id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u) << id;
    const auto &from = ends[0]["ph"] == "s" ? ends[0] : ends[1];
    const auto &to = ends[0]["ph"] == "s" ? ends[1] : ends[0];
    EXPECT_EQ(from["ph"], "s") << id;
    EXPECT_EQ(to["ph"], "f") << id;
    EXPECT_EQ(std::abs(from["pid"].get<int>() - to["pid"].get<int>()), 1) << id;
    EXPECT_GE(to["ts"].get<double>(), from["ts"].get<double>()) << id;
  }
}

TEST_F(Pipeline, aStageThatFailsEndsTheRun) {
  PlanT plan = pipelinePlan({.stages = 3});
  auto &share = *listOf(*plan.programs[2], plan::ListKind::backward)[0];
  opOf<plan::FillT>(share).value = INFINITY;
  expectExit(plan, 65, "written by instruction \"gradient of x\"");
}

} // namespace
} // namespace meshwork::runtime::test
