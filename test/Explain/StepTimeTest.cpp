// A step of a pipeline: its estimate against closed forms.
#include "lib/Explain/StepTime.h"
#include "Loaded.h"
#include "lib/Explain/Explain.h"
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/ListKinds.h"
#include "lib/Schedules/Lower.h"
#include "test/Plan/PipelinePlan.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain::test {
namespace {
using plan::ListKind;

/// A unit of time each: a flop, a byte that moves.
cost::Machine unitMachine(double latency = 0) {
  cost::Machine machine;
  machine.ranksPerNode = 8;
  machine.flops = machine.attention = {1, 1, 1};
  machine.memory = machine.kernels = 1e30;
  machine.links.fill(cost::Link{latency, 1, false});
  return machine;
}

void addList(plan::ProgramT &program, ListKind kind, uint32_t stage,
             uint64_t flops) {
  auto list = std::make_unique<plan::ListT>();
  list->kind = kind;
  list->stage = stage;
  auto instruction = std::make_unique<plan::InstructionT>();
  if (plan::sends(kind))
    instruction->op.Set(plan::SendT());
  else if (plan::receives(kind))
    instruction->op.Set(plan::ReceiveT());
  else
    instruction->op.Set(plan::FillT());
  instruction->flops = flops;
  list->instructions.push_back(std::move(instruction));
  program.lists.push_back(std::move(list));
}

uint32_t listFor(plan::ProgramT &program, ListKind kind, uint32_t stage,
                 uint64_t flops) {
  for (uint32_t i = 0; i < program.lists.size(); ++i)
    if (program.lists[i]->kind == kind && program.lists[i]->stage == stage)
      return i;
  addList(program, kind, stage, flops);
  return static_cast<uint32_t>(program.lists.size() - 1);
}

/// F takes 10, B 20, I 12, W 8, step 3, update 5; nothing but order is a plan.
uint64_t flopsOf(ListKind kind) {
  switch (kind) {
  case ListKind::step:
    return 3;
  case ListKind::forward:
    return 10;
  case ListKind::backward:
    return 20;
  case ListKind::input_grad:
    return 12;
  case ListKind::weight_grad:
    return 8;
  case ListKind::update:
    return 5;
  default:
    return 0;
  }
}

plan::PlanT scheduled(const schedules::Wanted &wanted) {
  schedules::Table table =
      *schedules::lower(*schedules::generate(wanted), schedules::Costs());
  plan::PlanT plan;
  plan.microbatches = static_cast<uint32_t>(wanted.microbatches);
  plan.mesh.push_back(std::make_unique<plan::AxisT>());
  plan.mesh.back()->size = static_cast<uint32_t>(table.ranks.size());
  plan.program_axes = {0};
  for (const std::vector<schedules::Action> &actions : table.ranks) {
    plan.program_numbers.push_back(static_cast<uint32_t>(plan.programs.size()));
    auto program = std::make_unique<plan::ProgramT>();
    auto run = [&](ListKind kind, int32_t stage, int32_t microbatch) {
      program->actions.emplace_back(
          listFor(*program, kind, static_cast<uint32_t>(stage), flopsOf(kind)),
          static_cast<uint32_t>(microbatch));
    };
    run(ListKind::step, 0, 0);
    for (const schedules::Action &action : actions)
      run(schedules::listKindOf(action.kind), action.stage, action.microbatch);
    run(ListKind::update, 0, 0);
    plan.programs.push_back(std::move(program));
  }
  return plan;
}

StepEstimate estimated(const plan::PlanT &source,
                       const cost::Machine &machine = unitMachine()) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::Plan::Pack(builder, &source));
  return estimateStep(
      *flatbuffers::GetRoot<plan::Plan>(builder.GetBufferPointer()), machine,
      cost::Ranks::threads);
}

// Of equal stages all F and B follow one another on a path that P - 1 stages
// enter and leave.
TEST(StepTime, isTheClosedFormOf1f1bWithEqualStages) {
  for (int32_t p : {2, 4})
    for (int32_t m : {1, 3, 8}) {
      StepEstimate one =
          estimated(scheduled({.name = "1f1b", .ranks = p, .microbatches = m}));
      EXPECT_DOUBLE_EQ(one.step.seconds, 3 + (m + p - 1) * 30 + 5)
          << p << " stages, " << m << " microbatches";
      ASSERT_TRUE(one.step.timeline);
      EXPECT_DOUBLE_EQ(one.step.timeline->bubbleFraction,
                       (p - 1.0) / (m + p - 1));
      EXPECT_DOUBLE_EQ(one.programs[0].seconds, 3 + m * 30 + 5);
    }
}

// A backward of its own time where the schedule has B, its parts where it has
// I and W: all of W but the last rank's hide in the bubble.
TEST(StepTime, ofSchedulesThatSplitTheBackward) {
  StepEstimate one =
      estimated(scheduled({.name = "zb-h1", .ranks = 4, .microbatches = 8}));
  EXPECT_DOUBLE_EQ(one.programs[3].seconds, 3 + 8 * 30 + 5);
  EXPECT_LT(one.step.seconds, 3 + 11 * 30 + 5);
}

// One microbatch goes all the way there and back.
TEST(StepTime, hasTheTransfersThatNothingHides) {
  StepEstimate one =
      estimated(scheduled({.name = "1f1b", .ranks = 4, .microbatches = 1}),
                unitMachine(/*latency=*/7));
  EXPECT_DOUBLE_EQ(one.step.seconds, 3 + 4 * 30 + 2 * 3 * 7 + 5);
  EXPECT_DOUBLE_EQ(one.programs[0].lists[0].seconds, 3);
}

TEST(StepTime, withoutStagesIsTheSumOfTheLists) {
  Loaded file = tiny(2, 3);
  StepEstimate one =
      estimateStep(file.plan(), unitMachine(), cost::Ranks::threads);
  EXPECT_FALSE(one.step.timeline);
  EXPECT_DOUBLE_EQ(one.step.seconds, one.programs[0].seconds);
}

TEST(StepTime, isToldOfAPipeline) {
  plan::PlanT source = plan::test::pipelinePlan({.microbatches = 4});
  Loaded file(source);
  auto told = nlohmann::json::parse(*json(file.plan()))["estimate"];
  StepEstimate one = estimateStep(file.plan(), *machineOf(file.plan()).machine,
                                  cost::Ranks::threads);
  EXPECT_DOUBLE_EQ(told["step_ms"].get<double>(), 1e3 * one.step.seconds);
  EXPECT_DOUBLE_EQ(told["bubble_fraction"].get<double>(),
                   one.step.timeline->bubbleFraction);
  EXPECT_HAS(text(file.plan()), "\nEstimated time on cpu: " +
                                    timeText(one.step.seconds) + " a step, ");
  EXPECT_HAS(text(file.plan()), " of this rank's own in a step");
}

} // namespace
} // namespace meshwork::explain::test
