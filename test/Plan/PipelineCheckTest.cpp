// Plans of pipelines: the check takes right ones and names what is wrong.
#include "PipelinePlan.h"
#include "lib/Plan/PlanCheck.h"
#include "lib/Plan/PlanFile.h"
#include "meshwork/Plan/Frame.h"
#include <ctime>
#include <functional>
#include <gtest/gtest.h>

namespace meshwork::plan::test {
namespace {

absl::Status check(const PlanT &plan) {
  return PlanFile::fromBytes(encode(plan)).status();
}

void expectText(const PlanT &plan, const std::string &text) {
  absl::Status status = check(plan);
  EXPECT_NE(std::string(status.message()).find(text), std::string::npos)
      << "expected: " << text << "\nfound: " << status;
}

TEST(PipelineCheck, goodPlansAreTaken) {
  for (uint32_t stages : {1u, 2u, 3u, 4u})
    for (uint32_t microbatches : {1u, 2u, 5u})
      for (bool forwardFirst : {false, true}) {
        PlanT plan = pipelinePlan({.stages = stages,
                                   .microbatches = microbatches,
                                   .forwardFirst = forwardFirst});
        EXPECT_TRUE(check(plan).ok())
            << stages << " stages, " << microbatches << ": " << check(plan);
      }
}

/// Changes a good plan of two stages in one place.
struct Wrong {
  const char *text;
  std::function<void(PlanT &, ProgramT &, ProgramT &)> change;
};

TEST(PipelineCheck, wrongPlansAreNamed) {
  const Wrong cases[] = {
      {"its peer is at 2 of axis \"pp\", which has the size 2",
       [](PlanT &, ProgramT &p, ProgramT &) {
         opOf<SendT>(*listOf(p, ListKind::send)[0]).peer = 2;
       }},
      {"it is along axis 7, the mesh has 2",
       [](PlanT &, ProgramT &p, ProgramT &) {
         opOf<SendT>(*listOf(p, ListKind::send)[0]).axis = 7;
       }},
      {"along axis \"dp\", expected one on which programs depend",
       [](PlanT &, ProgramT &p, ProgramT &) {
         opOf<SendT>(*listOf(p, ListKind::send)[0]).axis = 0;
         opOf<SendT>(*listOf(p, ListKind::send)[0]).peer = 0;
       }},
      {"between rank 0 and itself",
       [](PlanT &, ProgramT &p, ProgramT &) {
         opOf<SendT>(*listOf(p, ListKind::send)[0]).peer = 0;
       }},
      {"it has no part",
       [](PlanT &, ProgramT &p, ProgramT &) {
         opOf<SendT>(*listOf(p, ListKind::send)[0]).parts.clear();
       }},
      {"rank 0: send goes to rank 1, which has no recv of stage 1",
       [](PlanT &, ProgramT &, ProgramT &q) {
         q.lists[listNumber(q, ListKind::recv)]->stage = 2;
       }},
      {"but part 0 has another type or shape there",
       [](PlanT &, ProgramT &, ProgramT &q) {
         opOf<ReceiveT>(*listOf(q, ListKind::recv)[0]).parts = {xRow};
       }},
      {"with 1 parts, expected 2 as there",
       [](PlanT &, ProgramT &, ProgramT &q) {
         opOf<ReceiveT>(*listOf(q, ListKind::recv)[0]).parts = {x, x};
       }},
      {"is Fill, expected a send in such a list",
       [](PlanT &, ProgramT &p, ProgramT &) {
         FillT fill;
         fill.dst = x;
         listOf(p, ListKind::send)[0]->op.Set(fill);
       }},
      {"expected neither a send nor a receive",
       [](PlanT &, ProgramT &p, ProgramT &) {
         forwardOf(p).push_back(std::move(listOf(p, ListKind::send)[0]));
         listOf(p, ListKind::send).clear();
         SendT send = opOf<SendT>(*forwardOf(p).back());
         insert(listOf(p, ListKind::send), 0, "x", send);
       }},
      {"send moves buffer \"x\", which outlives a microbatch",
       [](PlanT &, ProgramT &p, ProgramT &) {
         p.buffers[p.views[x]->buffer]->persistent = true;
       }},
      {"transfer 0 is of microbatch 0 here and 1 there",
       [](PlanT &, ProgramT &, ProgramT &q) {
         auto actions = stageActions({}, 1);
         for (auto &[kind, microbatch] : actions)
           microbatch ^= 1;
         setStageActions(q, actions);
       }},
  };
  for (const Wrong &one : cases) {
    PlanT plan = pipelinePlan();
    one.change(plan, *plan.programs[0], *plan.programs[1]);
    expectText(plan, one.text);
  }
}

// A list of weights' gradients may come later than what stands behind it, in
// some microbatches or in all.
TEST(PipelineCheck, whatComesLaterIsNotThereYet) {
  using enum ListKind;
  auto stage = [](const std::vector<StageAction> &order) {
    PlanT plan = pipelinePlan({.microbatches = 2});
    ProgramT &last = *plan.programs[1];
    last.lists[listNumber(last, backward)]->kind = input_grad;
    auto late = std::make_unique<ListT>();
    late->kind = weight_grad;
    late->stage = 1;
    late->instructions = std::move(listOf(last, input_grad));
    listOf(last, input_grad).clear();
    last.lists.insert(last.lists.begin() + listNumber(last, send_grad),
                      std::move(late));
    setStageActions(last, order);
    return plan;
  };
  std::vector<StageAction> first = {
      {recv, 0},      {forward, 0}, {input_grad, 0}, {weight_grad, 0},
      {send_grad, 0}, {recv, 1},    {forward, 1},    {input_grad, 1}};
  auto after = [&](StageAction a, StageAction b) {
    std::vector<StageAction> all = first;
    all.insert(all.end(), {a, b});
    return stage(all);
  };
  PlanT good = after({weight_grad, 1}, {send_grad, 1});
  EXPECT_TRUE(check(good).ok()) << check(good);
  expectText(after({send_grad, 1}, {weight_grad, 1}),
             "reads buffer \"dx\" before anything was written to it");
}

// Both sides begin with what the other one sends later.
TEST(PipelineCheck, ranksThatWaitForEachOtherAreNamed) {
  PlanT plan = pipelinePlan({.microbatches = 2});
  // The first rank sends the second microbatch when it has the first one's
  // gradient.
  setStageActions(*plan.programs[0], {{ListKind::forward, 0},
                                      {ListKind::send, 0},
                                      {ListKind::recv_grad, 0},
                                      {ListKind::backward, 0},
                                      {ListKind::forward, 1},
                                      {ListKind::send, 1},
                                      {ListKind::recv_grad, 1},
                                      {ListKind::backward, 1}});
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  // The other one gives it only when it has received the second.
  PlanT wrong = pipelinePlan({.microbatches = 2, .forwardFirst = true});
  std::swap(wrong.programs[0], plan.programs[0]);
  expectText(wrong, "ranks would wait forever: each of these waits for the "
                    "next, the last for "
                    "the first (the shortest such cycle)\n"
                    "  rank                                      waits for\n"
                    "     0  before 0B0 (action 4) for 0RECV_B0  rank 1\n"
                    "     1  before 1F1 (action 4) for 1RECV_F1  rank 0");
}

// The middle rank asks for the first gradient before it hands on what the last
// one needs to make it: beside each other both arrive, in order neither does.
TEST(PipelineCheck, transfersOfGpusEndInOrder) {
  for (bool isForGpus : {false, true}) {
    PlanT plan = pipelinePlan({.stages = 3,
                               .microbatches = 2,
                               .forwardFirst = true,
                               .isForGpus = isForGpus});
    EXPECT_TRUE(check(plan).ok()) << check(plan);
    setStageActions(*plan.programs[1], {{ListKind::recv, 0},
                                        {ListKind::send, 0},
                                        {ListKind::recv_grad, 0},
                                        {ListKind::recv, 1},
                                        {ListKind::send, 1},
                                        {ListKind::send_grad, 0},
                                        {ListKind::recv_grad, 1},
                                        {ListKind::send_grad, 1}});
    if (isForGpus)
      expectText(plan, "\n     1  before 1SEND_F1 (action 5) for 1RECV_F1, "
                       "which a GPU moves after 1RECV_B0  rank 2\n"
                       "     2  before 2F1 (action 4) for 2RECV_F1");
    else
      EXPECT_TRUE(check(plan).ok()) << check(plan);
  }
}

// Nothing of a plan for 16 stages and 128 microbatches takes long: 30 ms of a
// processor, also where other processes share it.
TEST(PipelineCheck, longTablesAreQuick) {
  PlanT plan = pipelinePlan({.stages = 16, .microbatches = 128});
  std::vector<unsigned char> bytes = encode(plan);
  std::clock_t begin = std::clock();
  absl::Status status = checkPlan(*GetPlan(bytes.data() + plan::frameBytes));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(std::clock() - begin, 4 * CLOCKS_PER_SEC);
}

} // namespace
} // namespace meshwork::plan::test
