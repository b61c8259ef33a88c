// Sizes that the axes do not divide: 13 tokens of vocabulary, 11 of ffn, 5 of a
// sequence, over 2, 3 and 4 ranks, alone and nested. No result may show the
// elements behind the end of a rank's part: compareSteps checks that they are
// zero in all that is kept.
#include "TinyConfigs.h"

#include "dialects/mesh/Mesh.h"
#include "passes/sharding/Shardings.h"

using namespace meshwork::interpreter;

namespace {

constexpr int64_t vocabulary = 13;

std::vector<std::string> models() {
  TinySizes sizes{
      .vocabulary = vocabulary, .ffn = 11, .hidden = 24, .heads = 12};
  std::vector<std::string> list = {tinyGpt2(sizes)};
  sizes.keyHeads = 12;
  list.push_back(tinyLlama(sizes));
  sizes.tied = true;
  sizes.keyHeads = 2; // splits axes of 4 in two: blocks nest
  sizes.heads = 4;
  list.push_back(tinyLlama(sizes));
  return list;
}

/// What one rank computes. Fused too, as only that rounds the constant
/// 1 / tokens to f32.
const StepResult &oneRank(const std::string &model) {
  static std::map<std::string, StepResult> known;
  auto [entry, isNew] = known.try_emplace(model);
  if (isNew) {
    Strategy alone;
    alone.sequence = 5;
    Compiled one(model, alone.spec());
    EXPECT_TRUE(one.program) << one.diagnostics;
    if (one.program)
      entry->second = runStep(one, randomStep(one, vocabulary));
  }
  return entry->second;
}

std::string specWith(const std::string &axes, const std::string &rules) {
  return "[mesh]\naxes = [" + axes +
         "]\n[batch]\nglobal = 16\nmicro = 8\nsequence = 5\n"
         "[precision]\ncompute = \"f32\"\n[optimizer]\n"
         "clip_grad_norm = 0.5\n[shard]\n" +
         rules;
}

void checkSpec(const std::string &model, const std::string &spec,
               int64_t headChunk = 256) {
  Compiled many(model, spec, headChunk);
  ASSERT_TRUE(many.program) << spec << many.diagnostics;
  EXPECT_EQ(
      compareSteps(runStep(many, randomStep(many, vocabulary)), oneRank(model)),
      "")
      << spec;
}

Strategy strategyOf(int64_t tp, bool sequenceParallel) {
  Strategy strategy{1, 1, tp, sequenceParallel};
  strategy.sequence = 5;
  return strategy;
}

class Uneven : public testing::TestWithParam<std::tuple<int, bool>> {};
TEST_P(Uneven, TensorAndSequenceParallel) {
  auto [tp, sequenceParallel] = GetParam();
  for (const std::string &model : models()) {
    if (tp == 3 && model == models().back())
      continue; // 4 heads over 3 ranks
    Strategy strategy = strategyOf(tp, sequenceParallel);
    checkSpec(model, strategy.spec());
    checkSpec(model, strategy.spec(), /*headChunk=*/3);
    strategy.dp = 2;
    strategy.zeroAxes = {"dp"};
    for (unsigned stage : {1, 2, 3}) {
      strategy.zero = stage;
      checkSpec(model, strategy.spec());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, Uneven,
                         testing::Combine(testing::Values(2, 3, 4),
                                          testing::Bool()));

/// A mesh and rules that the defaults do not make.
void checkRules(const std::string &axes, const std::string &rules) {
  for (const std::string &model : models())
    checkSpec(model, specWith(axes, rules));
}

/// The head works on some of each sequence's tokens where no rank has a part
/// of the vocabulary; the ffn, too.
TEST(UnevenRules, SequenceAlone) {
  for (const char *axes : {"\"x=2\"", "\"x=3\"", "\"x=4\""})
    checkRules(axes, "residual_sequence = [\"x\"]\n");
}

/// Blocks of blocks: what is behind the end of an inner one may be another
/// rank's by its number.
TEST(UnevenRules, TwoAxesOnOneDim) {
  checkRules("\"x=2\", \"y=2\"",
             "vocab = [\"x\", \"y\"]\nffn = [\"y\", \"x\"]\n"
             "residual_sequence = [\"x\", \"y\"]\n");
  checkRules("\"x=2\", \"y=4\"", "vocab = [\"y\", \"x\"]\nffn = [\"x\"]\n"
                                 "residual_sequence = [\"y\"]\n");
}

TEST(UnevenRules, VocabularyAndSequenceOverDifferentAxes) {
  checkRules("\"x=2\", \"y=3\"",
             "vocab = [\"y\"]\nresidual_sequence = [\"x\"]\nffn = [\"x\"]\n");
}

TEST(UnevenRules, Embed) { checkRules("\"x=5\"", "embed = [\"x\"]\n"); }

/// More ranks than entries: the last ones have nothing.
TEST(UnevenRules, EmptyParts) {
  checkRules("\"x=8\"", "vocab = [\"x\"]\nresidual_sequence = [\"x\"]\n");
}

/// Makes the extent number `at` of a program that of a dim without padding;
/// false when there is none. What it masked then counts.
bool unmask(Compiled &compiled, int at) {
  bool found = false;
  compiled.program->module().walk([&](meshwork::mesh::ExtentOp op) {
    if (at-- != 0)
      return;
    found = true;
    auto attr = meshwork::mesh::meshOf(op);
    meshwork::sharding::Axes axes;
    for (auto name : op.getAxes().getAsRange<mlir::StringAttr>())
      axes.push_back(static_cast<unsigned>(attr.find(name)));
    int64_t local = meshwork::sharding::localSize(
        compiled.mesh, static_cast<int64_t>(op.getSize()), axes);
    op.setSize(local * compiled.mesh.numRanks(axes));
  });
  return found;
}

/// Results depend on masks; those that stand where an exponential might be
/// infinite are idle here. The first is the head's.
TEST(UnevenMasks, Matter) {
  std::pair<const char *, const char *> cases[] = {
      {"\"x=2\", \"y=2\"",
       "vocab = [\"x\", \"y\"]\nresidual_sequence = [\"x\"]\n"},
      {"\"x=3\"", "residual_sequence = [\"x\"]\n"}};
  for (auto [axes, rules] : cases)
    for (const std::string &model : models()) {
      int noticed = 0;
      for (int at = 0;; ++at) {
        Compiled many(model, specWith(axes, rules), 256, "partition");
        ASSERT_TRUE(many.program) << many.diagnostics;
        if (!unmask(many, at))
          break;
        StepResult result = runStep(many, randomStep(many, vocabulary));
        bool differs = !compareSteps(result, oneRank(model), 1e-6).empty();
        noticed += differs;
        EXPECT_TRUE(differs || at > 0) << rules << model;
      }
      EXPECT_GE(noticed, 1) << rules << model;
      RecordProperty("noticed", noticed);
    }
}

TEST(UnevenErrors, HeadsAndSamplesStayWhole) {
  auto refusal = [](const std::string &spec) {
    return Compiled(models().front(), spec).diagnostics;
  };
  std::string text = refusal(strategyOf(5, false).spec());
  EXPECT_NE(
      text.find("dim 'heads' of size 12 cannot be split over axis 'tp' of "
                "size 5; an axis of 4 or 6 ranks would divide it"),
      std::string::npos)
      << text;
}

} // namespace
