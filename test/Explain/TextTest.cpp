// What people read: the facts must be there, in words.
#include "Loaded.h"
#include "lib/Explain/Explain.h"

namespace meshwork::explain::test {
namespace {

std::string story(const Loaded &file, const char *name) {
  auto text = value(file.plan(), name);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : std::string();
}

TEST(Text, tellsModelMemoryWorkTrafficAndPhases) {
  std::string tables = text(tiny(2).plan());
  EXPECT_HAS(tables, "dp=2: 2 ranks, batch split over dp");
  EXPECT_HAS(tables, "8 sequences of 16 tokens = 128 tokens; on each rank 2 "
                     "microbatches of 2");
  EXPECT_HAS(tables, "Most is live at instruction 2, wte (embedding, forward)");
  EXPECT_HAS(tables, "x       activations  1.00 KiB  wte");
  EXPECT_HAS(tables, "each rank saw only its part of the batch");
  EXPECT_HAS(tables, "0F0,0B0,0F1,0B1");
  EXPECT_LACKS(tables, "f32[1,1,256]"); // only with `schedule`
}

TEST(Text, ofAttentionWithinDocuments) {
  auto plan = plan::test::tinyPlan();
  EXPECT_LACKS(text(Loaded(plan).plan()), "documents");
  plan::test::addDocuments(plan);
  EXPECT_HAS(text(Loaded(plan).plan()),
             "2 microbatches of 2, attention within documents\n");
  plan.programs[0]->inputs.back()->kind = plan::InputKind::document_positions;
  plan.programs[0]->inputs[1]->kind = plan::InputKind::inner_targets;
  EXPECT_HAS(
      text(Loaded(plan).plan()),
      "2 microbatches of 2, positions of documents, no loss at their ends\n");
}

TEST(Text, scheduleListsEveryInstruction) {
  Loaded file = tiny(2);
  std::string tables = text(file.plan(), {.schedule = true});
  EXPECT_HAS(tables, "f32[256,8], i32[2,16] -> f32[2,16,8]");
  EXPECT_HAS(tables, "f32[1,1,256], f32[1,256,1] -> f32[1,1,1]");
  for (const char *name :
       {"share of a token", "rotary", "wte (gradient)", "optimizer"})
    EXPECT_HAS(tables, name);
}

TEST(Text, ofOneRankThatReducesNothing) {
  auto plan = plan::test::tinyPlan();
  auto &update = plan::test::updateOf(*plan.programs[0]);
  update.erase(update.begin(), update.begin() + 2);
  plan::test::setLossKnown(*plan.programs[0], 0);
  plan.batch_axes.clear();
  Loaded file(plan);
  std::string tables = text(file.plan());
  EXPECT_HAS(tables, "Nothing moves between ranks.");
  EXPECT_HAS(tables, "0F0,0B0,0F1,0B1\n");
  EXPECT_HAS(story(file, "wte.weight"), "not at all: there is one rank");
  EXPECT_HAS(story(file, "wte.weight"), "No collective touches it.");
}

TEST(Text, aLongStepIsCutInTheMiddle) {
  EXPECT_HAS(text(tiny(1, 9).plan()), "0F0,0B0,...,0F8,0B8");
}

TEST(Text, severalProgramsNameTheirRanks) {
  auto plan = plan::test::tinyPlan({.ranks = 3});
  plan.programs.push_back(std::make_unique<plan::ProgramT>(*plan.programs[0]));
  plan::test::setPrograms(plan, {0, 1, 0});
  Loaded file(plan);
  EXPECT_HAS(text(file.plan()), "== Program 0, ranks 0, 2\n");
  EXPECT_HAS(text(file.plan()), "== Program 1, rank 1\n");
  EXPECT_HAS(story(file, "wte.weight"), "== Program 1, rank 1\n");
}

TEST(Value, aParameter) {
  std::string text = story(tiny(4), "wte.weight");
  EXPECT_HAS(text, "[256,8] in files, 2048 elements");
  EXPECT_HAS(text, "normal of mean 0 and standard deviation 0.02");
  EXPECT_HAS(text, "weight, master  f32[256,8]");
  EXPECT_HAS(text, "weight, master: replicated");
  EXPECT_HAS(
      text,
      "gradient: partial over dp: a sum over the rank's own 1/4 of the batch");
  EXPECT_HAS(text, "each rank saw only its part of the batch");
  EXPECT_HAS(text, "reads weight, master as table");
  EXPECT_HAS(text, "writes gradient as dtable");
  EXPECT_HAS(text, "updates gradient as src and dst");
}

TEST(Value, aBuffer) {
  std::string text = story(tiny(2), "x");
  EXPECT_HAS(text, "x: a buffer of 1.00 KiB = 1024 bytes");
  EXPECT_HAS(text, "f32[2,16,8]");
  EXPECT_HAS(text, "2 to 3");
  EXPECT_HAS(
      text,
      "split over dp: every rank has its own 2 sequences of each microbatch");
  EXPECT_HAS(text, "No collective touches it.");
  EXPECT_LACKS(text, "optimizer");
}

TEST(Value, whatIsNotThere) {
  auto text = value(tiny(1).plan(), "absent");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
} // namespace meshwork::explain::test
