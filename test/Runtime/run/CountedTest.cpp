// Counted repeats: the same bits as as many turns written out, wherever the
// count comes from.
#include "RunCase.h"
#include "runtime/machine/Executor.h"

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using plan::PlanT, plan::ProgramT;

class Counted : public RunCase {};

PlanT rounds(uint32_t ranks) {
  PlanT plan = tinyPlan({.ranks = ranks});
  addRounds(plan);
  return plan;
}
PlanT turns(uint32_t ranks, uint32_t count) {
  PlanT plan = tinyPlan({.ranks = ranks});
  addTurns(plan, count);
  return plan;
}

TEST_F(Counted, runsAsOftenAsItsCount) {
  for (uint32_t ranks : {1, 2, 3, 4})
    EXPECT_TRUE(saved(rounds(ranks)) == saved(turns(ranks, ranks - 1)))
        << ranks;
  EXPECT_FALSE(saved(turns(4, 3)) == saved(turns(4, 2)));
}

TEST_F(Counted, isTracedTurnByTurn) {
  options.trace = temporary("counted.trace");
  options.traceSteps = 1;
  options.profile = true;
  (void)saved(rounds(3));
  std::string trace = readFile(options.trace);
  size_t brought = 0;
  for (size_t at = trace.find("\"bring\""); at != std::string::npos;
       at = trace.find("\"bring\"", at + 1))
    ++brought;
  EXPECT_EQ(brought, 3u * 2 * 2); // ranks, microbatches, turns
}

TEST_F(Counted, moreThanTheMostIsAnError) {
  PlanT plan = rounds(4);
  opOf<plan::RepeatT>(*forwardOf(*plan.programs[0])[2]).times = 2;
  expectExit(plan, 65,
             "forward[2] \"rounds\": it is to run 3 times, expected 0 to 2");
}

// The last of four ranks, three places on in their ring.
TEST(RankProgram, hops) {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  uint32_t all =
      addTensor(p, "all", plan::BufferKind::workspace, plan::DType::f32, {32});
  std::vector<uint32_t> views;
  for (uint32_t hop : {0, 1, 3}) {
    views.push_back(addView(p, p.views[all]->buffer, plan::DType::f32, {8}));
    shift(p, views.back(), {0}, 32);
    p.views.back()->shifts[0]->hop = hop;
  }
  std::vector<unsigned char> bytes = encode(plan);
  const plan::Plan &read = *plan::GetPlan(bytes.data() + plan::frameBytes);
  Mesh mesh = meshOf(read);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    auto program = RankProgram::create(read, rank, mesh);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->shifts[views[0]], 32 * rank);
    EXPECT_EQ(program->shifts[views[1]], 32 * ((rank + 3) % 4));
    EXPECT_EQ(program->shifts[views[2]], 32 * ((rank + 1) % 4));
  }
}

} // namespace
} // namespace meshwork::runtime::test
