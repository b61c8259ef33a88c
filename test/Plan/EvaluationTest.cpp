// What an evaluation runs of a step's lists: what the loss is made of, and
// nothing that a gradient or an update is.
#include "lib/Plan/Evaluation.h"
#include "PipelinePlan.h"
#include "lib/Plan/PlanFile.h"
#include "lib/Plan/ProgramLives.h"
#include <gtest/gtest.h>

namespace meshwork::plan {
namespace {
using namespace test;

/// "forward: wte, mean", the names of what is kept, of each list with some.
std::string keptIn(const Plan &plan, uint32_t number = 0) {
  const Program &program = *plan.programs()->Get(number);
  auto views = decodeViews(plan, program);
  EXPECT_TRUE(views.ok()) << views.status();
  ActionTable table = tableOf(program);
  Evaluation of = evaluationOf(program, table, *views);
  std::string text;
  for (uint32_t list = 0; list < table.lists().size(); ++list) {
    if (!of.runs(list))
      continue;
    text += (text.empty() ? "" : "; ") + nameOf(table.lists()[list]) + ":";
    const Instructions &all = listOf(program, list);
    for (uint32_t i = 0; i < all.size(); ++i)
      if (of.runs(list, i))
        text += " " + all.Get(i)->name()->str();
  }
  return text;
}

std::string kept(const PlanT &plan, uint32_t number = 0) {
  auto file = PlanFile::open(writePlan(plan, "evaluation"));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? keptIn((*file)->plan(), number) : "";
}

TEST(Evaluation, LeavesGradientsAndTheUpdateOut) {
  EXPECT_EQ(kept(tinyPlan({.ranks = 2})), "forward: wte mean; update: loss");
}

TEST(Evaluation, LeavesOutWhatTheUpdateBrings) {
  PlanT plan = tinyPlan({.ranks = 2});
  addMomentum(plan, /*onHost=*/true);
  EXPECT_EQ(kept(plan), "forward: wte mean; update: loss fetched put back");
}

TEST(Evaluation, KeepsRepeatsWithTheirCountsAndWaits) {
  PlanT plan = tinyPlan({.ranks = 2});
  addRounds(plan);
  EXPECT_EQ(kept(plan),
            "forward: wte most rounds bring brought copy copied mean; "
            "update: loss");
}

TEST(Evaluation, OfARepeatWithoutEffectNothing) {
  PlanT plan = tinyPlan({.ranks = 2});
  addTurns(plan, 3);
  InstructionList &list = forwardOf(*plan.programs[0]);
  std::rotate(list.begin() + 1, list.begin() + 4, list.begin() + 5);
  EXPECT_EQ(kept(plan), "forward: wte mean; update: loss");
}

TEST(Evaluation, StagesSendForwardAlone) {
  PlanT plan = pipelinePlan({.stages = 3});
  EXPECT_EQ(kept(plan, 0).find("grad"), std::string::npos) << kept(plan, 0);
  for (uint32_t stage = 0; stage < 3; ++stage) {
    std::string text = kept(plan, stage);
    EXPECT_EQ(text.find("send") != std::string::npos, stage < 2) << text;
    EXPECT_EQ(text.find("recv") != std::string::npos, stage > 0) << text;
    EXPECT_NE(text.find("update: loss"), std::string::npos) << text;
    EXPECT_EQ(text.find("backward"), std::string::npos) << text;
    EXPECT_EQ(text.find("_grad"), std::string::npos) << text;
  }
}
} // namespace
} // namespace meshwork::plan
