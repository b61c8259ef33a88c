// Counted repeats on bytes: as many turns as the count says, and nothing under
// way where one begins.
#include "lib/Plan/PlanFile.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "passes/verify/Machine.h"
#include "passes/verify/States.h"
#include "test/Plan/TestPlan.h"
#include <gmock/gmock.h>

namespace meshwork::verify {
namespace {
using namespace plan::test;

plan::PlanT rounds(uint32_t ranks) {
  plan::PlanT plan = tinyPlan({.ranks = ranks});
  addRounds(plan);
  return plan;
}
plan::PlanT turns(uint32_t ranks) {
  plan::PlanT plan = tinyPlan({.ranks = ranks});
  addTurns(plan, ranks - 1);
  return plan;
}

/// A step on all ranks; then the weights of the last one.
absl::StatusOr<interpreter::Tensor> run(const plan::PlanT &made) {
  std::vector<unsigned char> bytes = encode(made);
  const plan::Plan &plan = *plan::GetPlan(bytes.data() + plan::frameBytes);
  StepData data(plan.global_batch(), plan.sequence(), plan.vocabulary(), 5);
  auto machine = Machine::create(plan, {}, data);
  MESHWORK_RETURN_IF_ERROR(machine.status());
  MESHWORK_RETURN_IF_ERROR(loadStates(plan, **machine));
  MESHWORK_RETURN_IF_ERROR((*machine)->runStep());
  RankState &last = (*machine)->rank((*machine)->numRanks() - 1);
  return last.read(last.view(weight));
}

TEST(Counted, RunsAsOftenAsItsCount) {
  for (uint32_t ranks : {1, 2, 4}) {
    auto found = run(rounds(ranks)), expected = run(turns(ranks));
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(found->getElements().vec(), expected->getElements().vec());
  }
}

// What the check of a plan would refuse.
TEST(Counted, RanksThatCountApartAreFound) {
  plan::PlanT plan = rounds(2);
  plan::ProgramT &p = *plan.programs[0];
  plan::CopyT own;
  own.src = opOf<plan::CollectiveT>(*forwardOf(p)[1]).parts[0]->src;
  own.dst = opOf<plan::RepeatT>(*forwardOf(p)[2]).count;
  forwardOf(p).erase(forwardOf(p).begin() + 1);
  insert(forwardOf(p), 1, "own", own);
  EXPECT_THAT(run(plan).status().message(),
              testing::HasSubstr("the ranks wait for each other"));
}

} // namespace
} // namespace meshwork::verify
