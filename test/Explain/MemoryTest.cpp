// Live bytes over time, work and traffic, against numbers worked out by hand.
#include "lib/Explain/Memory.h"
#include "Loaded.h"
#include "lib/Cost/Times.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "lib/Explain/Work.h"

namespace meshwork::explain::test {
namespace {
using plan::BufferKind;

uint64_t most(const MemoryUse &use, BufferKind kind) {
  return use.mostOfKind[static_cast<size_t>(kind)];
}

/// A buffer of `floats` at `offset`, written by an instruction of its own at
/// the end of `list`.
void addFilled(plan::ProgramT &program, plan::ListKind list, const char *name,
               uint64_t offset, int64_t floats) {
  auto buffer = std::make_unique<plan::BufferT>();
  buffer->name = name;
  buffer->kind = BufferKind::activations;
  buffer->offset = offset;
  buffer->size_bytes = static_cast<uint64_t>(floats) * 4;
  program.buffers.push_back(std::move(buffer));
  plan::FillT fill;
  fill.dst = plan::test::addView(
      program, static_cast<uint32_t>(program.buffers.size() - 1),
      plan::DType::f32, {floats});
  auto &instructions = plan::test::listOf(program, list);
  plan::test::insert(instructions, instructions.size(), name, fill);
}

/// The tiny plan's table is 256 x 8 floats; x is 2 x 16 x 8, live in 2..3.
TEST(Memory, kindsAreLargestSumsOfLiveBuffers) {
  Loaded file = tiny(2);
  MemoryUse use = measureMemory(file.program(), Listing(file.program()));
  EXPECT_EQ(most(use, BufferKind::weights), 256u * 8 * 4);
  EXPECT_EQ(most(use, BufferKind::gradients), 256u * 8 * 4);
  EXPECT_EQ(most(use, BufferKind::activations), 2u * 16 * 8 * 4);
  EXPECT_EQ(most(use, BufferKind::optimizer), 0u);
  EXPECT_EQ(use.arenaBytes, file.program().arena_bytes());
  EXPECT_EQ(use.fullestAt, 2u);
  EXPECT_EQ(use.fullestBytes, use.persistentBytes + 2 * 16 * 8 * 4);
  EXPECT_EQ(use.liveAtFullest, std::vector<uint32_t>{2});
}

TEST(Memory, buffersThatNeverMeetDoNotAddUp) {
  auto plan = plan::test::tinyPlan();
  auto &program = *plan.programs[0];
  uint64_t end = program.arena_bytes;
  addFilled(program, plan::ListKind::forward, "early", end, 160);
  addFilled(program, plan::ListKind::update, "late", end,
            320); // the same bytes, later
  program.arena_bytes += 1280;
  program.workspace_bytes_per_thread = 100;
  Loaded file(plan);
  MemoryUse use = measureMemory(file.program(), Listing(file.program()));
  EXPECT_EQ(most(use, BufferKind::activations), 1280u);
  EXPECT_EQ(use.fullestAt, 10u);
  EXPECT_EQ(use.peakBytes(), program.arena_bytes + 100);
}

/// A momentum of 256 x 8 floats; what of it is on the device is its copy.
TEST(Memory, whatIsOnTheHostIsCountedApart) {
  plan::PlanT plan = plan::test::tinyPlan({.ranks = 2});
  plan::test::addMomentum(plan, /*onHost=*/true);
  Loaded file(plan);
  MemoryUse use = measureMemory(file.program(), Listing(file.program()));
  HostUse host = mostHostUse(file.plan());
  EXPECT_EQ(host.kept, 256u * 8 * 4);
  EXPECT_EQ(host.toDevice, host.kept);
  EXPECT_EQ(host.back, host.kept);
  EXPECT_EQ(most(use, BufferKind::optimizer), 0u);
  EXPECT_EQ(most(use, BufferKind::workspace), 256u * 8 * 4);
  EXPECT_EQ(use.peakBytes(), file.program().arena_bytes());
  EXPECT_NE(
      text(file.plan())
          .find("\nBeside it, in the host's memory: 8.00 KiB = 8192 bytes "
                "(optimizer); a step brings 8.00 KiB to the device and takes "
                "8.00 KiB back\n"),
      std::string::npos);
}

TEST(Work, countsEachPhaseAsOftenAsItRuns) {
  Loaded file = tiny(1, 3);
  Listing listing(file.program());
  EXPECT_EQ(listing.phaseOf(0).name, std::string("once"));
  EXPECT_EQ(listing.phaseOf(4).name, std::string("forward"));
  EXPECT_EQ(listing.phaseOf(listing.size() - 1).name, std::string("update"));
  for (const Work &work : workByKind(listing))
    if (work.kind == "matmul") { // one in the forward pass, two in the update
      EXPECT_EQ(work.instructions, 3u);
      EXPECT_EQ(work.runs, 5u);
      EXPECT_EQ(work.flops, 500u);
      EXPECT_EQ(work.bytes, 5000u);
    } else {
      EXPECT_NE(work.kind, "rotary_table"); // at start only
    }
  EXPECT_EQ(workOfPhase(listing, listing.phases()[2]).flops, 300u);
}

TEST(Work, hugeCostsStayHuge) {
  auto plan = plan::test::tinyPlan();
  plan::test::forwardOf(*plan.programs[0])[1]->flops = UINT64_MAX / 2 + 1;
  Loaded file(plan);
  EXPECT_EQ(workByKind(Listing(file.program()))[0].flops, UINT64_MAX);
}

TEST(Collectives, bytesSentByTheBestAlgorithms) {
  using plan::CollectiveKind;
  EXPECT_EQ(cost::bytesSent(CollectiveKind::all_reduce, 8192, 1), 0u);
  EXPECT_EQ(cost::bytesSent(CollectiveKind::all_reduce, 8192, 2), 8192u);
  EXPECT_EQ(cost::bytesSent(CollectiveKind::all_reduce, 8192, 4), 12288u);
  EXPECT_EQ(cost::bytesSent(CollectiveKind::reduce_scatter, 8192, 4), 6144u);
  EXPECT_EQ(cost::bytesSent(CollectiveKind::all_gather, 8192, 4), 6144u);
  EXPECT_EQ(cost::bytesSent(CollectiveKind::all_reduce, UINT64_MAX, 1 << 24),
            UINT64_MAX);
}

TEST(Collectives, areGroupedByCause) {
  auto plan = plan::test::tinyPlan({.ranks = 4});
  auto &loss = plan::test::opOf<plan::CollectiveT>(
      *plan::test::updateOf(*plan.programs[0])[0]);
  loss.cause->value = "loss";
  loss.cause->user = "the mean";
  loss.cause->reason = "is over all ranks";
  loss.cause->annotations = {"shard.batch"};
  plan::test::updateOf(*plan.programs[0])[0]->layer = 3;
  Loaded file(plan);
  auto list = traffic(file.plan(), file.program(), Listing(file.program()));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].cause, "loss for the mean, which is over all ranks");
  EXPECT_EQ(list[0].annotations, std::vector<std::string>{"shard.batch"});
  EXPECT_TRUE(list[0].isOfLayer);
  EXPECT_FALSE(list[1].isOfLayer);
  EXPECT_EQ(list[0].bytesSentPerRank, 6u); // 2 * 3/4 of one float
  EXPECT_EQ(list[1].axis, "dp");
  EXPECT_EQ(list[1].phase, "update");
  EXPECT_EQ(list[1].group, 4u);
  EXPECT_EQ(list[1].count, 1u);
  EXPECT_EQ(list[1].bufferBytes, 8192u);
  EXPECT_EQ(list[1].bytesSentPerRank, 12288u);
}

} // namespace
} // namespace meshwork::explain::test
