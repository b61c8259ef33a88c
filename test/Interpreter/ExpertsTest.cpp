// Mixtures of experts: the op against what it becomes, its gradients against
// differences, and each strategy against one rank.
#include "TinyConfigs.h"
#include "TinyModel.h"

#include "dialects/schedule/Schedule.h"

using namespace meshwork;
using namespace meshwork::interpreter;

namespace {

std::string mixtral(const TinySizes &sizes = {.keyHeads = 2}) {
  return tinyMixture(sizes);
}
std::string qwen(int64_t layers = 3) {
  return tinyMixture({.keyHeads = 2, .tied = true, .layers = layers},
                     /*isQwen=*/true);
}

constexpr const char *float8 = "compute = \"f32\"\nmatmul = \"fp8\"";

/// The op as it is defined, token by token, and as sorted rows.
void checkParts(const std::string &model, const std::string &precision) {
  Compiled one(model, Strategy{.precision = precision}.spec(), 256, "step");
  ASSERT_TRUE(one.program) << one.diagnostics;
  StepData data = randomStep(one, 12);
  StepResult whole = runStep(one, data);
  one.program->transform("transformer-expand-experts");
  EXPECT_EQ(compareSteps(runStep(one, data), whole), "");
}

TEST(Experts, AreTheSumOfTheirParts) {
  for (const std::string &model : {mixtral(), qwen()})
    for (const char *precision : {"compute = \"f32\"", float8})
      checkParts(model, precision);
}

/// Rows are rounded where they are, by one scale: one that were of a rank's
/// rows would round otherwise, by 2^-4 of an element.
TEST(Experts, InFloat8MeanWhatOneRankMeans) {
  Strategy strategies[] = {{.dp = 2, .zero = 1, .zeroAxes = {"dp"}, .ep = 2},
                           {.dp = 2, .zero = 3, .zeroAxes = {"dp"}, .ep = 2},
                           {.tp = 2, .sequenceParallel = true, .ep = 2},
                           {.tp = 2, .rules = "experts = [\"tp\"]"},
                           {.pp = 2, .ep = 2}};
  std::string model = mixtral({.keyHeads = 2, .layers = 2});
  for (Strategy &strategy : strategies)
    for (const char *exchange : {"exchange = \"gathered\"",
                                 "exchange = \"all_to_all\"\nbound = 1.0"}) {
      bool areTokensShared = strategy.ep == 1;
      strategy.precision = float8;
      strategy.experts = areTokensShared ? "" : exchange;
      checkStrategy(model, strategy);
    }
  EXPECT_NE(compareSteps(expectedStep(model, strategies[0], 12),
                         expectedStep(model, Strategy{}, 12), 1e-4),
            "")
      << "nothing was rounded";
}

/// Of two microbatches, by each weight.
TEST(Experts, GradientsAreTheDerivatives) {
  for (const std::string &model : {mixtral(), qwen()})
    EXPECT_GT(checkDerivative(model), 0u);
}

TEST(Experts, StrategiesMeanWhatOneRankMeans) {
  const Strategy strategies[] = {
      {.dp = 2},
      {.tp = 2},
      {.tp = 4},
      {.tp = 2, .sequenceParallel = true},
      {.ep = 2},
      {.ep = 4},
      {.dp = 2, .ep = 2},
      {.dp = 2, .zero = 1, .zeroAxes = {"dp"}, .ep = 2},
      {.dp = 2, .zero = 3, .zeroAxes = {"dp"}, .ep = 2},
      {.tp = 2, .sequenceParallel = true, .ep = 2},
      {.tp = 2, .ep = 4},
      {.dp = 2, .rules = "experts = [\"dp\"]"},
      {.tp = 2, .rules = "experts = [\"tp\"]"},
      {.tp = 2, .ep = 2, .rules = "experts = [\"ep\", \"tp\"]"},
      {.fsdp = 2, .zero = 3, .zeroAxes = {"fsdp"}, .ep = 2},
  };
  for (const Strategy &strategy : strategies)
    for (const std::string &model : {mixtral(), qwen(2)})
      checkStrategy(model, strategy);
}

TEST(Experts, StagesMeanWhatOneRankMeans) {
  for (const char *schedule :
       {"", "schedule = \"zb-h1\"",
        "schedule = \"interleaved-1f1b\"\nvirtual_stages = 2"})
    for (const std::string &model :
         {mixtral({.keyHeads = 2, .layers = 4}), qwen(4)}) {
      checkStrategy(model, {.pp = 2, .pipeline = schedule});
      checkStrategy(model, {.pp = 2, .pipeline = schedule, .ep = 2});
    }
}

/// With slots for an even choice, and for all tokens on one rank.
TEST(Experts, ExchangedTokensMeanWhatOneRankMeans) {
  const Strategy strategies[] = {
      {.ep = 2},
      {.ep = 4},
      {.dp = 2, .ep = 2},
      {.dp = 2, .zero = 3, .zeroAxes = {"dp"}, .ep = 2},
      {.tp = 2, .sequenceParallel = true, .ep = 2},
      {.dp = 2, .rules = "experts = [\"dp\"]"},
      {.tp = 2, .sequenceParallel = true, .rules = "experts = [\"tp\"]"},
      {.pp = 2, .pipeline = "schedule = \"zb-h1\"", .ep = 2},
  };
  for (Strategy strategy : strategies)
    for (const char *bound : {"1.0", "\"worst\""}) {
      strategy.experts =
          std::string("exchange = \"all_to_all\"\nbound = ") + bound;
      checkStrategy(mixtral({.keyHeads = 2, .layers = 4}), strategy);
    }
}

/// An odd sequence leaves padding on some ranks: it chooses no expert.
TEST(Experts, PaddingChoosesNone) {
  Compiled one(qwen(), Strategy{.sequence = 5}.spec());
  ASSERT_TRUE(one.program) << one.diagnostics;
  StepResult expected = runStep(one, randomStep(one, 12));
  for (int64_t tp : {2, 4})
    for (const char *rules : {"", "experts = [\"tp\"]"}) {
      Strategy strategy{
          .tp = tp, .sequenceParallel = true, .sequence = 5, .rules = rules};
      Compiled many(qwen(), strategy.spec());
      ASSERT_TRUE(many.program) << many.diagnostics;
      EXPECT_EQ(compareSteps(runStep(many, randomStep(many, 12)), expected), "")
          << strategy.name();
      EXPECT_EQ(many.runAsPlan(12), "") << strategy.name();
    }
}

/// What is chosen is sorted once, for both passes, whatever runs again.
TEST(Experts, AreSortedOnce) {
  for (const char *policy : {"none", "selective", "full"}) {
    Compiled many(mixtral(),
                  Strategy{.ep = 2}.spec() + "[recompute]\npolicy = \"" +
                      policy + "\"\n",
                  256, "schedule");
    ASSERT_TRUE(many.program) << many.diagnostics;
    int count = 0;
    many.program->module().walk([&](schedule::SortRowsOp) { ++count; });
    EXPECT_EQ(count, 1) << policy;
    EXPECT_EQ(many.runAsPlan(12), "") << policy;
  }
}

TEST(Experts, RunInBf16) {
  for (const Strategy &strategy :
       {Strategy{.precision = "compute = \"bf16\""},
        Strategy{.precision = "compute = \"bf16\"", .ep = 2}}) {
    Compiled many(mixtral(), strategy.spec());
    ASSERT_TRUE(many.program) << many.diagnostics;
    EXPECT_EQ(many.runAsPlan(12), "") << strategy.name();
  }
}

} // namespace
