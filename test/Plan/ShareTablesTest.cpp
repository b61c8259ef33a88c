// A plan whose equal tables are written once says what it said before.
#include "lib/Plan/ShareTables.h"
#include "TestPlan.h"
#include "lib/Plan/PlanFile.h"
#include "meshwork/Plan/Frame.h"
#include <gtest/gtest.h>

namespace meshwork::plan::test {
namespace {
using Bytes = std::vector<uint8_t>;

Bytes packed(const PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  FinishPlanBuffer(builder, Plan::Pack(builder, &plan));
  return Bytes(builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
}

/// Without any sharing: equal plans are equal bytes.
Bytes unshared(const Bytes &payload) {
  PlanT plan;
  GetPlan(payload.data())->UnPackTo(&plan);
  return packed(plan);
}

Bytes shared(const PlanT &plan) {
  return shareTables(*GetPlan(packed(plan).data())).value();
}

TEST(ShareTables, saysTheSameInFewerBytes) {
  for (const PlanT &plan : {tinyPlan(), tinyGpuPlan()}) {
    Bytes before = packed(plan), after = shared(plan);
    EXPECT_EQ(unshared(after), before);
    EXPECT_LT(after.size(), before.size());
  }
}

TEST(ShareTables, theLauncherTakesIt) {
  Bytes payload = shared(tinyPlan());
  std::vector<unsigned char> file(frameBytes + payload.size());
  writeFrame(payload.data(), payload.size(), file.data());
  std::memcpy(file.data() + frameBytes, payload.data(), payload.size());
  auto loaded = PlanFile::fromBytes(file);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
}

TEST(ShareTables, sharesOnceAndForAll) {
  Bytes once = shared(tinyPlan());
  EXPECT_EQ(shareTables(*GetPlan(once.data())), once);
}

TEST(ShareTables, instructionsStayApart) {
  PlanT plan = tinyPlan();
  auto &list = plan.programs.front()->lists.front()->instructions;
  list.push_back(std::make_unique<InstructionT>(*list.front()));
  Bytes payload = shared(plan);
  const auto &found =
      *GetPlan(payload.data())->programs()->Get(0)->lists()->Get(0);
  const Instruction *first = found.instructions()->Get(0),
                    *last = found.instructions()->Get(list.size() - 1);
  EXPECT_NE(first, last);
  EXPECT_EQ(first->op(), last->op());
}

/// One view in many places: the check at load would take it for an attack.
TEST(ShareTables, sharesNothingThatTheCheckWouldRefuse) {
  PlanT plan = tinyPlan();
  auto &views = plan.programs.front()->views;
  views.front()->shifts.resize(8);
  for (auto &shift : views.front()->shifts)
    shift = std::make_unique<ShiftT>();
  for (int i = 0; i < 10000; ++i)
    views.push_back(std::make_unique<ViewT>(*views.front()));
  EXPECT_FALSE(shareTables(*GetPlan(packed(plan).data())));
}
} // namespace
} // namespace meshwork::plan::test
