// top_k in a model: rows of a table that each token chooses by its scores. What
// one rank chooses, every rank of a mesh does, whatever is split.
#include "TinyConfigs.h"

#include "dialects/schedule/Schedule.h"

using namespace meshwork;
using namespace meshwork::interpreter;

namespace {

constexpr int64_t vocabulary = 12;

/// `groups` stands behind the scores. The dim of experts is called `ffn`, which
/// tp splits.
std::string modelOf(const std::string &groups) {
  return R"(
#bsn = #transformer.dims<batch, sequence, ffn>
#ne = #transformer.dims<ffn, embed>
!tokens = tensor<?x?xi32, #transformer.dims<batch, sequence>>
!x = tensor<?x?x8xf32, #bse>
!scores = tensor<?x?x6xf32, #bsn>
!choices = tensor<?x?x2xi32, #transformer.dims<batch, sequence, choices>>
!table = tensor<6x8xf32, #ne>
!chosen = tensor<?x?x2x8xf32, #transformer.dims<batch, sequence, choices, embed>>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) -> tensor<f32> {
    %wte = transformer.parameter "wte" init <normal, 0.0, 0.5> : tensor<12x8xf32, #ve>
    %x = transformer.embedding %wte, %tokens : tensor<12x8xf32, #ve>, !tokens -> !x
    %router = transformer.parameter "router" layer 0 init <normal, 0.0, 0.5> : !table
    %logits = transformer.contract "bse,ne->bsn" %x, %router : !x, !table -> !scores
    %choices = transformer.top_k %logits )" +
         groups + R"( : !scores -> !choices
    %table = transformer.parameter "table" layer 0 init <normal, 0.0, 0.5> : !table
    %rows = transformer.embedding %table, %choices : !table, !choices -> !chosen
    %first = transformer.slice %rows dim "choices" offset 0 : !chosen -> !x
    %second = transformer.slice %rows dim "choices" offset 1 : !chosen -> !x
    %sum = transformer.add %first, %second : !x, !x -> !x
    %y = transformer.add %x, %sum : !x, !x -> !x
    %loss = transformer.head_loss %y, %wte, %targets scale 1.0 : !x, tensor<12x8xf32, #ve>, !tokens -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)";
}

const char *const kinds[] = {"", "groups 3 kept 2 by maximum",
                             "groups 3 kept 1 by two_best"};

void checkAsPlan(const std::string &model, const Strategy &strategy) {
  Compiled many(model, strategy.spec());
  ASSERT_TRUE(many.program) << many.diagnostics;
  EXPECT_EQ(many.runAsPlan(vocabulary), "") << strategy.name();
}

TEST(TopK, IsOneRanksOnMany) {
  for (const char *kind : kinds) {
    std::string model = modelOf(kind);
    for (const Strategy &strategy :
         {Strategy{.dp = 2}, Strategy{.tp = 2}, Strategy{.tp = 3},
          Strategy{.dp = 2,
                   .tp = 2,
                   .sequenceParallel = true,
                   .zero = 3,
                   .zeroAxes = {"dp"}}}) {
      checkStrategy(model, strategy, vocabulary);
      checkAsPlan(model, strategy);
    }
  }
}

/// 5 tokens over 2, 3 and 4 ranks: those behind a part's end choose nothing.
/// One rank is fused too, as only that rounds 1 / tokens to f32.
TEST(TopK, PaddingChoosesNothing) {
  std::string model = modelOf(kinds[2]);
  Compiled one(model, Strategy{.sequence = 5}.spec());
  ASSERT_TRUE(one.program) << one.diagnostics;
  StepResult expected = runStep(one, randomStep(one, vocabulary));
  for (int64_t tp : {2, 3, 4}) {
    Strategy strategy{.tp = tp, .sequenceParallel = true, .sequence = 5};
    Compiled many(model, strategy.spec());
    ASSERT_TRUE(many.program) << many.diagnostics;
    EXPECT_EQ(
        compareSteps(runStep(many, randomStep(many, vocabulary)), expected), "")
        << tp;
    checkAsPlan(model, strategy);
  }
}

/// What is chosen is kept, and not chosen again in the backward pass.
TEST(TopK, IsNeverRunAgain) {
  Strategy strategy{.tp = 2};
  for (const char *policy : {"none", "selective", "full"}) {
    Compiled many(modelOf(""),
                  strategy.spec() + "[recompute]\npolicy = \"" + policy +
                      "\"\n",
                  256, "schedule");
    ASSERT_TRUE(many.program) << many.diagnostics;
    int count = 0;
    many.program->module().walk([&](schedule::TopKOp) { ++count; });
    EXPECT_EQ(count, 1) << policy;
  }
}

/// A step in bf16 chooses among f32 scores.
TEST(TopK, ReadsF32InBf16) {
  Strategy strategy{.tp = 2, .precision = "compute = \"bf16\""};
  Compiled many(modelOf(""), strategy.spec());
  ASSERT_TRUE(many.program) << many.diagnostics;
  EXPECT_EQ(many.runAsPlan(vocabulary), "");
}

} // namespace
