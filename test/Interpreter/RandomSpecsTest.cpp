// Random specs: meshes, rules, pins with open dims and priorities, ZeRO,
// documents, FP8, split sequences, samples in a microbatch. A spec may be
// refused, for a reason that names one of its keys. Else it becomes a plan that
// the launcher takes, and all ranks compute what one rank does.
#include "RandomSpec.h"
#include "TinyConfigs.h"

#include "dialects/mesh/Mesh.h"

#include <set>

using namespace meshwork::interpreter;

namespace {

constexpr int numSpecs = 200;
constexpr int64_t vocabulary = 23;

struct Model {
  std::string text;
  std::vector<Parameter> parameters;
};

Model withParameters(const std::string &text) {
  Model model{text, {}};
  Compiled one(text,
               "[mesh]\naxes = [\"dp=1\"]\n[batch]\nglobal = 1\nmicro = "
               "1\nsequence = 6\n",
               256, "step");
  for (const auto &[key, layout] : one.states)
    if (key.kind == meshwork::transformer::StateKind::weight)
      model.parameters.push_back({key.name, layout.shape.size()});
  return model;
}

/// A refusal comes from the spec's own checks or from annotating, never from a
/// later phase, and says which line of the spec, or which axis, it is about.
void checkRefusal(const Compiled &compiled, const RandomSpec &spec) {
  const std::string &why = compiled.diagnostics;
  EXPECT_TRUE(why.starts_with("spec.toml:") || why.starts_with("shard: "))
      << why << spec.text();
  bool named = false;
  for (const char *word :
       {"shard.", "zero.", "context.", "mesh.axes", "axis '", "pin '",
        "no parameter is named '", "split the sequence ("})
    named |= why.find(word) != std::string::npos;
  EXPECT_TRUE(named) << why << spec.text();
}

void addCollectives(Compiled &compiled, std::set<std::string> &kinds) {
  compiled.program->module().walk(
      [&](meshwork::mesh::CollectiveOpInterface op) {
        kinds.insert(op->getName().stripDialect().str());
      });
}

const std::vector<Model> &models() {
  static const std::vector<Model> list = {
      withParameters(tinyLlama({.keyHeads = 3,
                                .tied = true,
                                .vocabulary = vocabulary,
                                .ffn = 11,
                                .hidden = 12,
                                .heads = 6,
                                .layers = 2})),
      withParameters(tinyLlama({.keyHeads = 2,
                                .vocabulary = vocabulary,
                                .ffn = 22,
                                .hidden = 8,
                                .heads = 4,
                                .layers = 2})),
      withParameters(tinyGpt2({.vocabulary = vocabulary,
                               .ffn = 12,
                               .hidden = 12,
                               .heads = 6,
                               .layers = 2})),
      withParameters(tinyLlama({.keyHeads = 2,
                                .vocabulary = vocabulary,
                                .ffn = 32,
                                .hidden = 32,
                                .heads = 4,
                                .layers = 2})),
      withParameters(tinyMixture({.keyHeads = 2,
                                  .vocabulary = vocabulary,
                                  .ffn = 32,
                                  .hidden = 32,
                                  .heads = 4,
                                  .layers = 2}))};
  return list;
}

/// Those for FP8 come last: their sizes allow products in 8 bits.
constexpr size_t numFloat8Models = 2;
const Model &modelOf(unsigned seed, bool float8) {
  if (float8)
    return models()[models().size() - (seed / 10 % 3 == 0 ? 2 : 1)];
  return models()[seed % (models().size() - numFloat8Models)];
}

/// What one rank makes of a spec's step, whatever its mesh. Fused too, as only
/// that rounds the constant 1 / tokens to f32.
const StepResult &oneRank(const Model &model, const RandomSpec &spec) {
  static std::map<std::pair<std::string, std::string>, StepResult> known;
  auto [entry, isNew] = known.try_emplace({model.text, spec.alone()});
  if (isNew) {
    Compiled one(model.text, spec.alone());
    EXPECT_TRUE(one.program) << one.diagnostics;
    if (one.program)
      entry->second = runStep(one, randomStep(one, vocabulary));
  }
  return entry->second;
}

/// A rank's block of several sequences has the other ranks' tokens between its
/// own: products, and embeddings where their table is whole, read a copy.
TEST(BlocksOfSequences, BecomePlans) {
  const Model &model = models()[1];
  for (const char *mesh :
       {"[\"x=2\"]\n[shard]\nresidual_sequence = [\"x\"]\n",
        "[\"tp=2\"]\n[shard]\nvocab = []\nresidual_sequence = [\"tp\"]\n"}) {
    std::string batch = "[batch]\nglobal = 6\nmicro = 3\nsequence = 6\n"
                        "[precision]\ncompute = \"f32\"\n";
    Compiled one(model.text, "[mesh]\naxes = []\n" + batch),
        many(model.text, batch + "[mesh]\naxes = " + mesh);
    ASSERT_TRUE(one.program && many.program)
        << one.diagnostics << many.diagnostics;
    StepResult expected = runStep(one, randomStep(one, vocabulary));
    EXPECT_EQ(
        compareSteps(runStep(many, randomStep(many, vocabulary)), expected),
        "");
    EXPECT_EQ(many.runAsPlan(vocabulary), "");
  }
}

/// The same ranks, which round a weight in each microbatch.
StepResult castingEachTime(const Model &model, RandomSpec spec) {
  spec.weightCasts = "microbatch";
  Compiled compiled(model.text, spec.text());
  EXPECT_TRUE(compiled.program) << compiled.diagnostics;
  return runStep(compiled, randomStep(compiled, vocabulary));
}

/// A tenth of the specs a test, so that ctest can share them out.
class RandomSpecs : public testing::TestWithParam<int> {};
TEST_P(RandomSpecs, AreRefusedOrMeanWhatOneRankMeans) {
  int refused = 0;
  std::set<std::string> kinds;
  for (int i = 0; i < numSpecs / 10; ++i) {
    unsigned seed = 1000 + GetParam() * numSpecs / 10 + i;
    bool float8 = seed % 10 == 0;
    const Model &model = modelOf(seed, float8);
    RandomSpec spec(seed, model.parameters, float8);
    Compiled many(model.text, spec.text());
    if (!many.program) {
      ++refused;
      checkRefusal(many, spec);
      continue;
    }
    addCollectives(many, kinds);
    // Which products are in 8 bits depends on the sizes of a rank's parts, so
    // one rank's numbers are others.
    StepResult result = runStep(many, randomStep(many, vocabulary));
    EXPECT_EQ(compareSteps(result, float8 ? castingEachTime(model, spec)
                                          : oneRank(model, spec)),
              "")
        << "seed " << seed << "\n"
        << spec.text();
    EXPECT_EQ(many.runAsPlan(vocabulary), "") << "seed " << seed << "\n"
                                              << spec.text();
  }
  EXPECT_GE(kinds.size(), 4u) << testing::PrintToString(kinds);
  EXPECT_LE(refused, numSpecs / 10 * 2 / 3);
}
INSTANTIATE_TEST_SUITE_P(Tenths, RandomSpecs, testing::Range(0, 10));

} // namespace
