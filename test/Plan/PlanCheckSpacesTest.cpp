// Bad plans, continued: what lies in the host's memory, copies on channels, and
// what the update reads of states.
#include "Mutants.h"

namespace meshwork::plan::test {
namespace {

// Where addMomentum puts things: update[1] fetches, update[6] puts back.
PlanT momentumPlan() {
  PlanT plan = tinyPlan({.ranks = 4});
  addMomentum(plan, /*onHost=*/true);
  return plan;
}
BufferT &kept(ProgramT &p) { return *p.buffers[p.buffers.size() - 2]; }
CopyT &fetch(ProgramT &p) { return opOf<CopyT>(*updateOf(p)[1]); }
CopyT &putBack(ProgramT &p) { return opOf<CopyT>(*updateOf(p)[6]); }

TEST(PlanCheck, buffersOnTheHost) {
  expectRefused(
      momentumPlan,
      {
          {"leaves the arena of 0 bytes on the host",
           [](PlanT &, ProgramT &p) { p.host_bytes = 0; }},
          {"do not fit 64 bits together",
           [](PlanT &, ProgramT &p) { p.host_bytes = ~uint64_t{0}; }},
          {"lies in unknown memory 2",
           [](PlanT &, ProgramT &p) { kept(p).space = static_cast<Space>(2); }},
          {"\"more\" (bytes 0 to 32 on the host, always live) share bytes",
           [](PlanT &, ProgramT &p) {
             addOnHost(p, "more", BufferKind::optimizer, DType::f32, {8});
             p.buffers.back()->offset = 0;
           }},
          {"update[5] \"momentum\": dst lies in the host's memory, in "
           "\"momentum\", which only a Copy reaches",
           [](PlanT &, ProgramT &p) {
             uint32_t column = addView(p, p.views[fetch(p).src]->buffer,
                                       DType::f32, {1, 256 * 8, 1});
             opOf<MatmulT>(*updateOf(p)[5]).dst = column;
           }},
          {"copies within the host's memory",
           [](PlanT &, ProgramT &p) {
             putBack(p).src = addOnHost(p, "more", BufferKind::optimizer,
                                        DType::f32, {256, 8});
           }},
          {"inputs: learning_rate: buffer \"learning rate\" lies in the host's "
           "memory",
           [](PlanT &, ProgramT &p) {
             uint32_t on = addOnHost(p, "learning rate", BufferKind::input,
                                     DType::f32, {1});
             p.inputs[2]->view = on;
           }},
      });
}

TEST(PlanCheck, copies) {
  expectRefused(
      momentumPlan,
      {
          {"update[6] \"momentum\": dst is f32[256,8], expected f32[2048]",
           [](PlanT &, ProgramT &p) {
             putBack(p).src = addView(p, p.views[putBack(p).src]->buffer,
                                      DType::f32, {2048});
           }},
          {"expected both without gaps",
           [](PlanT &, ProgramT &p) {
             for (uint32_t *side : {&fetch(p).src, &fetch(p).dst}) {
               *side = addView(p, p.views[*side]->buffer, DType::f32, {256, 4});
               p.views[*side]->strides = {8, 1};
             }
           }},
          {"src and dst share buffer \"momentum here\"",
           [](PlanT &, ProgramT &p) { putBack(p).dst = putBack(p).src; }},
          {"update[6] \"momentum\": channel 9, expected at most 8",
           [](PlanT &, ProgramT &p) { updateOf(p)[6]->channel = 9; }},
          {"update[4] \"fetched\": channel 1, expected at most 0",
           [](PlanT &, ProgramT &p) { updateOf(p)[4]->channel = 1; }},
          {"update[4] \"momentum\": dst writes buffer \"momentum here\", which "
           "update[1] \"momentum\" still writes; expected a Wait for channel "
           "1, "
           "count 1, before",
           [](PlanT &, ProgramT &p) {
             updateOf(p).erase(updateOf(p).begin() + 4);
           }},
          {"update[6] \"momentum\" is not waited for before the end",
           [](PlanT &, ProgramT &p) { updateOf(p).pop_back(); }},
      });
}

/// The momentum on the device: update[3] changes it, update[4] reads it.
PlanT onDevice() {
  PlanT plan = tinyPlan();
  addMomentum(plan, /*onHost=*/false);
  return plan;
}
ViewT &readLast(ProgramT &p) {
  return *p.views[opOf<MatmulT>(*updateOf(p)[4]).lhs];
}

// A read of a state gets the value that it means.
TEST(PlanCheck, statesBeforeAndAfterTheirUpdate) {
  expectRefused(
      onDevice,
      {
          {"update[4] \"optimizer\" reads lhs in \"momentum\" as the step "
           "finds it, after update[3] \"momentum\" writes there",
           [](PlanT &, ProgramT &p) { readLast(p).updated = false; }},
          {"update[3] \"optimizer\" reads lhs in \"momentum\" as the update "
           "leaves it, before update[4] \"momentum\" writes there",
           [](PlanT &, ProgramT &p) {
             std::swap(updateOf(p)[3], updateOf(p)[4]);
           }},
          {"reads lhs in \"momentum\" as the update leaves it, and nothing has "
           "written there",
           [](PlanT &, ProgramT &p) {
             updateOf(p).erase(updateOf(p).begin() + 3);
           }},
          {"forward[0] \"wte\" reads table in \"wte\" as the update leaves it, "
           "expected that of weights and optimizer states, in update alone",
           [](PlanT &, ProgramT &p) { p.views[weight]->updated = true; }},
          {"update[2] \"norm\" reads lhs in \"wte gradient\" as the update "
           "leaves it",
           [](PlanT &, ProgramT &p) { p.views[gradRow]->updated = true; }},
      });
}

absl::Status check(const PlanT &plan) {
  return PlanFile::fromBytes(encode(plan)).status();
}

// Who meets nobody on a channel holds up nobody.
TEST(PlanCheck, copiesAreRehearsed) {
  PlanT plan = momentumPlan();
  plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
  setPrograms(plan, {0, 1, 0, 1});
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  // Behind a collective on the copy's channel that only one program starts.
  ProgramT &p = *plan.programs[1];
  updateOf(p)[2]->channel = 1;
  opOf<WaitT>(*updateOf(p)[4]).count = 2;
  std::swap(updateOf(p)[3], updateOf(p)[4]);
  EXPECT_NE(check(plan).message().find("would wait forever"), std::string::npos)
      << check(plan);
}

} // namespace
} // namespace meshwork::plan::test
