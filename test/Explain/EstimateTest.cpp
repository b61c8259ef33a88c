// Estimates against sums by hand over the plan's own instructions.
#include "lib/Explain/Estimate.h"
#include "Loaded.h"
#include "lib/Explain/Explain.h"
#include "test/Plan/TestPlan.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain::test {
namespace {

using Json = nlohmann::ordered_json;

cost::Machine machine() {
  cost::Machine m;
  m.name = "m";
  m.ranksPerNode = 8;
  m.flops = m.attention = {1e9, 1e9, 1e9};
  m.memory = m.kernels = 1e9;
  m.launch = 1e-3;
  m.links.fill(cost::Link{1e-2, 1e6, false});
  return m;
}

Estimate estimateOf(const Loaded &file, const cost::Machine &on) {
  return estimate(file.plan(), file.program(), Listing(file.program()), on,
                  cost::Ranks::threads);
}

/// Turns that a count adds are for data that ask for more than usual: neither
/// time nor traffic has them, however many there may be.
TEST(Estimate, leavesOutTurnsThatACountAdds) {
  std::vector<double> seconds;
  for (uint32_t times : {1, 4}) {
    plan::PlanT plan = plan::test::tinyPlan({.ranks = 2});
    plan::test::addRounds(plan);
    auto &list = plan::test::forwardOf(*plan.programs[0]);
    list[2]->op.AsRepeat()->times = times;
    Loaded file(plan);
    seconds.push_back(estimateOf(file, machine()).seconds);
    Listing listing(file.program());
    uint64_t counted = 0;
    for (uint64_t i = 0; i < listing.size(); ++i)
      if (listing.timesOf(i) == 0) {
        EXPECT_EQ(listing.mostOf(i), times);
        ++counted;
      }
    EXPECT_EQ(counted, 4u);
  }
  EXPECT_DOUBLE_EQ(seconds[0], seconds[1]);
  EXPECT_GT(seconds[0], 0);
}

/// Nothing runs beside anything in this plan, so a step is the sum of it all.
TEST(Estimate, isTheSumOfWhatRuns) {
  Loaded file = tiny(2, 3);
  Estimate step = estimateOf(file, machine());
  Listing listing(file.program());
  double sum = 0;
  for (const Phase &phase : listing.phases())
    for (uint64_t i = phase.begin; i < phase.end; ++i) {
      auto flops = static_cast<double>(listing[i].flops()),
           bytes = static_cast<double>(listing[i].bytes());
      const plan::Collective *op = listing[i].op_as_Collective();
      // Sums over two ranks send what they reduce.
      double once =
          op ? 1e-2 + bytes / 1e6 : std::max(flops, bytes) / 1e9 + 1e-3;
      sum += once * static_cast<double>(phase.runs);
    }
  EXPECT_NEAR(step.seconds, sum, 1e-9 * sum);
  double lists = 0, kinds = 0;
  for (const Estimate::OfList &list : step.lists)
    lists += list.seconds;
  for (const Estimate::OfKind &kind : step.kinds)
    kinds += kind.seconds;
  EXPECT_NEAR(lists, sum, 1e-9 * sum);
  EXPECT_NEAR(kinds, sum, 1e-9 * sum);
  EXPECT_TRUE(std::is_sorted(
      step.kinds.begin(), step.kinds.end(),
      [](const auto &a, const auto &b) { return a.seconds > b.seconds; }));
}

/// The first sum of the update, on a channel, under the second one.
plan::PlanT beside() {
  plan::PlanT plan = plan::test::tinyPlan({.ranks = 2});
  auto &update = plan::test::updateOf(*plan.programs[0]);
  update[0]->channel = 1;
  auto wait = std::make_unique<plan::InstructionT>();
  plan::WaitT op;
  op.channel = op.count = 1;
  wait->op.Set(std::move(op));
  update.insert(update.begin() + 2, std::move(wait));
  return plan;
}

TEST(Estimate, aChannelHidesUntilItIsWaitedFor) {
  flatbuffers::FlatBufferBuilder builder;
  plan::PlanT source = beside(), before = plan::test::tinyPlan({.ranks = 2});
  auto secondsOf = [&](const plan::PlanT &plan, const cost::Machine &on) {
    builder.Clear();
    builder.Finish(plan::Plan::Pack(builder, &plan));
    const plan::Plan &packed =
        *flatbuffers::GetRoot<plan::Plan>(builder.GetBufferPointer());
    const plan::Program &program = *packed.programs()->Get(0);
    return estimate(packed, program, Listing(program), on, cost::Ranks::threads)
        .seconds;
  };
  const auto &update = plan::test::updateOf(*before.programs[0]);
  auto time = [](const plan::InstructionT &sum) {
    return 1e-2 + static_cast<double>(sum.bytes) / 1e6;
  };
  double hidden = std::min(time(*update[0]), time(*update[1]));
  EXPECT_NEAR(secondsOf(source, machine()),
              secondsOf(before, machine()) - hidden, 1e-9);
  cost::Machine busy = machine();
  for (cost::Link &link : busy.links)
    link.takesCores = true;
  EXPECT_NEAR(secondsOf(source, busy), secondsOf(before, busy), 1e-9);
}

/// A momentum that is fetched under the sum of the gradients and put back under
/// the weight's update.
TEST(Estimate, copiesToTheHostHideLikewise) {
  auto secondsWith = [](double host, bool onChannels) {
    plan::PlanT plan = plan::test::tinyPlan({.ranks = 2});
    plan::test::addMomentum(plan, /*onHost=*/true);
    auto &update = plan::test::updateOf(*plan.programs[0]);
    if (!onChannels)
      std::erase_if(update, [](auto &instruction) {
        instruction->channel = 0;
        return instruction->op.AsWait() != nullptr;
      });
    cost::Machine on = machine();
    on.device = spec::Device::cuda;
    on.host.bandwidth = host;
    Loaded file(plan);
    return estimate(file.plan(), file.program(), Listing(file.program()), on,
                    cost::Ranks::threads)
        .seconds;
  };
  const double copies = 2 * 256 * 8 * 4;
  EXPECT_NEAR(secondsWith(1e6, false) - secondsWith(1e9, false),
              copies / 1e6 - copies / 1e9, 1e-9);
  EXPECT_LT(secondsWith(1e6, true), secondsWith(1e6, false) - copies / 2e6);
}

TEST(Estimate, isOfTheMachineInThePlansSpec) {
  plan::PlanT plan = plan::test::tinyPlan();
  EXPECT_HAS(text(Loaded(plan).plan()), "\nEstimated time on cpu: ");
  plan.spec = "[target]\nmachine = \"xeon-2\"\n";
  EXPECT_HAS(text(Loaded(plan).plan()), "\nEstimated time on xeon-2: ");
  plan.spec = "[target]\nmachine = \"no\\nmachine\"\n";
  EXPECT_HAS(text(Loaded(plan).plan()),
             "\nEstimated time: none, the plan's machine is broken\n");
  Json told = Json::parse(*json(Loaded(plan).plan()))["estimate"];
  EXPECT_EQ(told.size(), 1u);
  EXPECT_TRUE(told.contains("error"));
}

TEST(Estimate, jsonTellsListsAndOperations) {
  Json told = Json::parse(*json(tiny(2, 3).plan()))["estimate"];
  EXPECT_EQ(told["machine"], "cpu");
  EXPECT_EQ(told["lists"][1]["list"], "forward");
  EXPECT_EQ(told["lists"][1]["runs"], 3);
  double sum = 0;
  for (const Json &list : told["lists"])
    sum += list["ms"].get<double>();
  EXPECT_NEAR(told["step_ms"].get<double>(), sum, 1e-9);
  EXPECT_EQ(told["step_ms"], told["processes_step_ms"]);
  EXPECT_FALSE(told["operations"].empty());
}

TEST(Estimate, timesHaveThreeDigits) {
  EXPECT_EQ(timeText(0), "0.0 us");
  EXPECT_EQ(timeText(4.56e-6), "4.6 us");
  EXPECT_EQ(timeText(456e-6), "456 us");
  EXPECT_EQ(timeText(4.564e-3), "4.56 ms");
  EXPECT_EQ(timeText(0.4564), "456 ms");
  EXPECT_EQ(timeText(4.564), "4.56 s");
  EXPECT_EQ(timeText(456.4), "456.4 s");
}

} // namespace
} // namespace meshwork::explain::test
