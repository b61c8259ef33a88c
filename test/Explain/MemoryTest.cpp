// Live bytes over time, work and traffic, against numbers worked out by hand.
#include "lib/Explain/Memory.h"
#include "Loaded.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Work.h"

namespace meshwork::explain::test {
namespace {
using plan::BufferKind;

uint64_t most(const MemoryUse &use, BufferKind kind) {
  return use.mostOfKind[static_cast<size_t>(kind)];
}

std::unique_ptr<plan::BufferT> buffer(const char *name, uint64_t offset,
                                      uint64_t bytes, uint32_t first,
                                      uint32_t last) {
  auto result = std::make_unique<plan::BufferT>();
  result->name = name;
  result->kind = BufferKind::activations;
  result->offset = offset;
  result->size_bytes = bytes;
  result->first_use = first;
  result->last_use = last;
  return result;
}

/// The tiny plan's table is 256 x 8 floats; x is 2 x 16 x 8, live in 2..3.
TEST(Memory, kindsAreLargestSumsOfLiveBuffers) {
  Loaded file = tiny(2);
  MemoryUse use = measureMemory(file.plan(), file.program(),
                                Listing(file.plan(), file.program()));
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
  auto plan = runtime::test::tinyPlan();
  auto &program = *plan.programs[0];
  uint64_t end = program.arena_bytes;
  program.buffers.push_back(buffer("early", end, 640, 4, 4));
  program.buffers.push_back(
      buffer("late", end, 1280, 6, 7)); // the same bytes, later
  program.arena_bytes += 1280;
  program.workspace_bytes_per_thread = 100;
  Loaded file(plan);
  MemoryUse use = measureMemory(file.plan(), file.program(),
                                Listing(file.plan(), file.program()));
  EXPECT_EQ(most(use, BufferKind::activations), 1280u);
  EXPECT_EQ(use.fullestAt, 6u);
  EXPECT_EQ(use.peakBytes(), program.arena_bytes + 100);
}

TEST(Memory, whatCrossesIntoMicrobatchesLivesThroughThem) {
  for (uint32_t microbatches : {1u, 2u}) {
    Loaded file = tiny(1, microbatches);
    Listing listing(file.plan(), file.program());
    flatbuffers::FlatBufferBuilder builder;
    plan::BufferT before = *buffer("b", 0, 64, 1, 2),
                  after = *buffer("a", 0, 64, 4, 6);
    auto life = [&](const plan::BufferT &from) {
      builder.Clear();
      builder.Finish(plan::Buffer::Pack(builder, &from));
      return lifeOf(
          listing, file.plan(),
          *flatbuffers::GetRoot<plan::Buffer>(builder.GetBufferPointer()));
    };
    // Instructions 2, 3 and 4 are the microbatch.
    EXPECT_EQ(life(before).last, microbatches == 1 ? 2u : 4u);
    EXPECT_EQ(life(after).first, microbatches == 1 ? 4u : 2u);
  }
}

TEST(Work, countsEachPhaseAsOftenAsItRuns) {
  Loaded file = tiny(1, 3);
  Listing listing(file.plan(), file.program());
  EXPECT_EQ(listing.phaseOf(0).name, std::string("once"));
  EXPECT_EQ(listing.phaseOf(4).name, std::string("microbatch"));
  EXPECT_EQ(listing.phaseOf(listing.size() - 1).name, std::string("update"));
  for (const Work &work : workByKind(listing))
    if (work.kind == "matmul") { // one in the microbatch, two in the update
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
  auto plan = runtime::test::tinyPlan();
  plan.programs[0]->microbatch[1]->flops = UINT64_MAX / 2 + 1;
  Loaded file(plan);
  EXPECT_EQ(workByKind(Listing(file.plan(), file.program()))[0].flops,
            UINT64_MAX);
}

TEST(Collectives, bytesSentByTheBestAlgorithms) {
  using plan::CollectiveKind;
  EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, 8192, 1), 0u);
  EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, 8192, 2), 8192u);
  EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, 8192, 4), 12288u);
  EXPECT_EQ(bytesSent(CollectiveKind::reduce_scatter, 8192, 4), 6144u);
  EXPECT_EQ(bytesSent(CollectiveKind::all_gather, 8192, 4), 6144u);
  EXPECT_EQ(bytesSent(CollectiveKind::all_reduce, UINT64_MAX, 1 << 24),
            UINT64_MAX);
}

TEST(Collectives, areGroupedByCause) {
  auto plan = runtime::test::tinyPlan({.ranks = 4});
  auto &loss =
      runtime::test::opOf<plan::CollectiveT>(*plan.programs[0]->update[0]);
  loss.cause->value = "loss";
  loss.cause->user = "the mean";
  loss.cause->reason = "is over all ranks";
  loss.cause->annotations = {"shard.batch"};
  plan.programs[0]->update[0]->layer = 3;
  Loaded file(plan);
  auto list = traffic(file.plan(), file.program(),
                      Listing(file.plan(), file.program()));
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
