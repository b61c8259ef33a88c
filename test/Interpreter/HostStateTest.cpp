// Copies between the memories of device and host, on bytes: what runs beside a
// rank is looked after until it is waited for.
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

plan::PlanT momentumPlan(bool onHost) {
  plan::PlanT plan = tinyPlan({.ranks = 2});
  addMomentum(plan, onHost);
  return plan;
}

/// A step on all ranks; then the weights of the last one.
absl::StatusOr<interpreter::Tensor> run(const plan::Plan &plan) {
  StepData data(plan.global_batch(), plan.sequence(), plan.vocabulary(), 5);
  auto machine = Machine::create(plan, {}, data);
  MESHWORK_RETURN_IF_ERROR(machine.status());
  MESHWORK_RETURN_IF_ERROR(loadStates(plan, **machine));
  MESHWORK_RETURN_IF_ERROR((*machine)->runStep());
  RankState &last = (*machine)->rank((*machine)->numRanks() - 1);
  return last.read(last.view(weight));
}

TEST(HostState, GivesTheSameWeights) {
  std::vector<std::vector<double>> weights;
  for (bool onHost : {false, true}) {
    auto file = plan::PlanFile::fromBytes(encode(momentumPlan(onHost)));
    ASSERT_TRUE(file.ok()) << file.status();
    auto found = run((*file)->plan());
    ASSERT_TRUE(found.ok()) << found.status();
    weights.push_back(found->getElements().vec());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

// What the check of a plan would refuse.
TEST(HostState, IsNotReadBeforeItHasCome) {
  plan::PlanT plan = momentumPlan(/*onHost=*/true);
  updateOf(*plan.programs[0]).erase(updateOf(*plan.programs[0]).begin() + 4);
  std::vector<unsigned char> bytes = encode(plan);
  auto found = run(*plan::GetPlan(bytes.data() + plan::frameBytes));
  EXPECT_THAT(found.status().message(),
              testing::HasSubstr("update[4] \"momentum\""));
  EXPECT_THAT(found.status().message(), testing::HasSubstr("momentum here"));
}

} // namespace
} // namespace meshwork::verify
