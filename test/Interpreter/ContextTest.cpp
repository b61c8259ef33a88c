// Context parallelism: attention over sequences that ranks share. Each method,
// layout and kind of mask, alone and beside other strategies, means what one
// rank means: the loss, each gradient and each updated weight.
#include "TinyConfigs.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"

using namespace meshwork::interpreter;

namespace {

constexpr int64_t vocabulary = 13;

struct Model {
  const char *name;
  std::string text;
};
/// All heads their own keys, with dropout in each place and learned positions;
/// groups of two; one key head for all; a window.
const std::vector<Model> &models() {
  TinySizes sizes{.vocabulary = vocabulary, .ffn = 11, .positions = 11};
  auto llama = [&](int64_t keyHeads, int64_t window) {
    TinySizes own = sizes;
    own.keyHeads = keyHeads;
    own.window = window;
    own.tied = keyHeads == 2;
    return tinyLlama(own);
  };
  static const std::vector<Model> list = {{"gpt2", tinyGpt2(sizes)},
                                          {"2 key heads", llama(2, 0)},
                                          {"1 key head", llama(1, 0)},
                                          {"a window of 3", llama(4, 3)}};
  return list;
}

/// How ranks share a sequence.
struct Way {
  const char *method, *layout; // the method as TOML
};

struct Case {
  std::string axes; // "\"cp=2\""
  Way way;
  int64_t sequence = 8;       // in which 16 samples of a step are cut
  std::string rules = {};     // of [shard], beside that of the sequence
  std::string rest = {};      // further sections
  const char *documents = ""; // keys of [batch] about them

  std::string batch(int64_t micro) const {
    return "[batch]\nglobal = 16\nmicro = " + std::to_string(micro) +
           "\nsequence = " + std::to_string(sequence) + "\n" + documents +
           "\n[precision]\ncompute = \"f32\"\n[optimizer]\n"
           "clip_grad_norm = 0.5\n";
  }
  std::string alone() const { return "[mesh]\naxes = []\n" + batch(8); }
  std::string spec() const {
    bool splitsBatch = axes.find("dp=2") != std::string::npos;
    return "[mesh]\naxes = [" + axes + "]\n" + batch(splitsBatch ? 4 : 8) +
           "[shard]\nsequence = [\"cp\"" +
           (axes.find("up=") != std::string::npos ? ", \"up\"" : "") + "]\n" +
           rules + "[context]\nlayout = \"" + way.layout +
           "\"\nmethod = " + way.method + "\n" + rest;
  }
};

/// Fused too, as only that rounds the constant 1 / tokens to f32.
const StepResult &oneRank(const Model &model, const Case &given) {
  static std::map<std::pair<std::string, std::string>, StepResult> known;
  auto [entry, isNew] = known.try_emplace({model.text, given.alone()});
  if (isNew) {
    Compiled one(model.text, given.alone());
    EXPECT_TRUE(one.program) << one.diagnostics;
    if (one.program)
      entry->second = runStep(one, randomStep(one, vocabulary));
  }
  return entry->second;
}

void check(const Model &model, const Case &given) {
  SCOPED_TRACE(std::string(model.name) + "\n" + given.spec());
  Compiled many(model.text, given.spec(), /*headChunk=*/3);
  ASSERT_TRUE(many.program) << many.diagnostics;
  EXPECT_EQ(compareSteps(runStep(many, randomStep(many, vocabulary)),
                         oneRank(model, given)),
            "");
  EXPECT_EQ(many.runAsPlan(vocabulary), "");
}

class Context : public testing::TestWithParam<Way> {};

/// 8 is even over 2 and 4; 11 leaves chunks short; of 3 over 4 a rank has
/// nothing.
TEST_P(Context, OverOneAxis) {
  for (const Model &model : models())
    for (const char *axes : {"\"cp=2\"", "\"cp=3\"", "\"cp=4\""})
      for (int64_t sequence : {8, 11, 3})
        check(model, {axes, GetParam(), sequence});
}

TEST_P(Context, BesideOthers) {
  for (const Model &model : models()) {
    check(model, {"\"cp=2\", \"tp=2\"", GetParam(), 8,
                  "residual_sequence = [\"tp\"]\n"});
    check(model, {"\"cp=2\", \"tp=2\"", GetParam(), 11,
                  "residual_sequence = [\"tp\"]\n"});
    check(model, {"\"dp=2\", \"cp=2\"", GetParam(), 8, "",
                  "[zero]\nstage = 3\n[recompute]\npolicy = \"full\"\n"});
    check(model, {"\"dp=2\", \"cp=3\"", GetParam(), 11, "",
                  "[zero]\nstage = 2\n[recompute]\npolicy = \"none\"\n"});
  }
}

TEST_P(Context, WithinDocuments) {
  for (const Model &model : models())
    for (auto [sequence, axes] :
         {std::pair(8, "\"cp=2\""), std::pair(11, "\"dp=2\", \"cp=2\"")})
      check(model, {axes, GetParam(), sequence, "", "", allOfDocuments});
}
INSTANTIATE_TEST_SUITE_P(
    Ways, Context,
    testing::Values(Way{"\"gathered\"", "block"}, Way{"\"gathered\"", "zigzag"},
                    Way{"\"ring\"", "block"}, Way{"\"ring\"", "zigzag"}),
    [](const auto &info) {
      std::string method = info.param.method;
      return method.substr(1, method.size() - 2) + "_" + info.param.layout;
    });

/// Heads are exchanged within a group, and each head's keys go around between
/// groups, or are gathered.
TEST(ExchangedContext, BesideAnotherMethod) {
  for (const char *method : {"{ cp = \"ring\", up = \"ulysses\" }",
                             "{ cp = \"gathered\", up = \"ulysses\" }"})
    for (const char *layout : {"block", "zigzag"})
      for (size_t i = 0; i < models().size(); ++i) {
        check(models()[i], {"\"cp=2\", \"up=2\"", {method, layout}, 11});
        check(models()[i], {"\"cp=3\", \"up=2\"",
                            {method, layout},
                            10,
                            "",
                            "",
                            allOfDocuments});
      }
}

/// Rows that attention takes for those of blocks are others' in zigzag.
TEST(ContextMutants, AttentionReadsPositions) {
  const Model &model = models()[1];
  Case given{"\"cp=2\"", {"\"gathered\"", "zigzag"}};
  Compiled many(model.text, given.spec());
  ASSERT_TRUE(many.program) << many.diagnostics;
  int tables = 0;
  many.program->module().walk([&](meshwork::transformer::AttentionOp op) {
    mlir::OpBuilder builder(op);
    auto table = op.getPositions().getDefiningOp();
    auto copy = llvm::cast<meshwork::mesh::PositionsOp>(builder.clone(*table));
    copy.setSplitAttr(meshwork::mesh::DimShardingAttr::get(
        op.getContext(), copy.getSplit().getAxes(), {}, false, 0));
    op.getPositionsMutable().assign(copy.getResult());
    ++tables;
  });
  EXPECT_EQ(tables, 1);
  EXPECT_NE(compareSteps(runStep(many, randomStep(many, vocabulary)),
                         oneRank(model, given)),
            "");
}

/// Keys that have come one hop are not the rank's own.
TEST(ContextMutants, HopsAreCounted) {
  const Model &model = models()[1];
  Case given{"\"cp=2\"", {"\"ring\"", "block"}};
  Compiled many(model.text, given.spec());
  ASSERT_TRUE(many.program) << many.diagnostics;
  int tables = 0;
  many.program->module().walk([&](meshwork::mesh::PositionsOp op) {
    tables += op.getHop() != 0;
    op.setHop(0);
  });
  EXPECT_GE(tables, 2);
  EXPECT_NE(compareSteps(runStep(many, randomStep(many, vocabulary)),
                         oneRank(model, given)),
            "");
}

} // namespace
