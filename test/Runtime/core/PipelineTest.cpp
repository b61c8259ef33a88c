// Plans of pipelines run: the bits of one rank, and what happens when a stage
// does not come.
#include "PipelinePlan.h"
#include "RunCase.h"

namespace meshwork::runtime::test {
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

TEST_F(Pipeline, aStageThatFailsEndsTheRun) {
  PlanT plan = pipelinePlan({.stages = 3});
  auto &share = *listOf(*plan.programs[2], plan::ListKind::backward)[0];
  opOf<plan::FillT>(share).value = INFINITY;
  expectExit(plan, 65, "written by instruction \"gradient of x\"");
}

} // namespace
} // namespace meshwork::runtime::test
