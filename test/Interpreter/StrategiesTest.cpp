// Every strategy means what one rank means: the loss, each gradient and each
// updated weight, for each legal combination of axes.
#include "TinyConfigs.h"
#include "TinyModel.h"

using namespace meshwork::interpreter;

namespace {

struct Model {
  const char *name;
  std::string text;
};
std::vector<Model> models() {
  return {
      {"gpt2", tinyGpt2()},
      {"llama, 2 key heads, tied", tinyLlama({.keyHeads = 2, .tied = true})},
      {"llama, 1 key head", tinyLlama({.keyHeads = 1})}};
}

/// Axes that state may be split over.
std::vector<std::vector<std::string>> zeroChoices(const Strategy &strategy) {
  std::vector<std::vector<std::string>> choices;
  if (strategy.dp > 1)
    choices.push_back({"dp"});
  if (strategy.fsdp > 1)
    choices.push_back({"fsdp"});
  if (strategy.dp > 1 && strategy.fsdp > 1)
    choices.push_back({"dp", "fsdp"});
  return choices;
}

/// All that differ in more than names, with up to 8 ranks.
std::vector<Strategy> strategiesOf(int64_t dp, int64_t fsdp, int64_t tp) {
  std::vector<Strategy> list;
  for (bool sequenceParallel : {false, true}) {
    if (sequenceParallel && tp == 1)
      continue;
    Strategy strategy{dp, fsdp, tp, sequenceParallel};
    list.push_back(strategy);
    for (unsigned stage : {1, 2, 3})
      for (const auto &axes : zeroChoices(strategy)) {
        strategy.zero = stage;
        strategy.zeroAxes = axes;
        list.push_back(strategy);
      }
  }
  return list;
}

/// (dp, fsdp, tp), each 1, 2 or 4.
std::vector<std::tuple<int, int, int>> meshesOfUpTo(int ranks) {
  std::vector<std::tuple<int, int, int>> list;
  for (int dp : {1, 2, 4})
    for (int fsdp : {1, 2, 4})
      for (int tp : {1, 2, 4})
        if (dp * fsdp * tp <= ranks)
          list.emplace_back(dp, fsdp, tp);
  return list;
}

/// One mesh a test, so that ctest can share them out.
class Strategies : public testing::TestWithParam<std::tuple<int, int, int>> {};
TEST_P(Strategies, MeanWhatOneRankMeans) {
  auto [dp, fsdp, tp] = GetParam();
  for (const Model &model : models())
    for (const Strategy &strategy : strategiesOf(dp, fsdp, tp)) {
      SCOPED_TRACE(model.name);
      checkStrategy(model.text, strategy);
    }
}
INSTANTIATE_TEST_SUITE_P(Meshes, Strategies,
                         testing::ValuesIn(meshesOfUpTo(8)));

const Strategy allAxes{.dp = 2,
                       .fsdp = 2,
                       .tp = 2,
                       .sequenceParallel = true,
                       .zero = 3,
                       .zeroAxes = {"dp", "fsdp"}};

/// Documents split as the samples do that they are in; heads and residual
/// streams split beside them. Each key alone, and all together.
TEST(Documents, AreThoseOfOneRank) {
  const std::string keys[] = {"documents = \"separate\"",
                              "positions = \"document\"",
                              "document_end_loss = false"};
  std::vector<Strategy> strategies = {
      {.dp = 4},
      {.tp = 4},
      {.tp = 2, .sequenceParallel = true},
      {.dp = 2, .zero = 1, .zeroAxes = {"dp"}},
      {.dp = 2, .fsdp = 2, .zero = 3, .zeroAxes = {"fsdp"}},
      allAxes};
  for (const Model &model : models())
    for (auto [i, strategy] : llvm::enumerate(strategies)) {
      strategy.sequence = 8;
      for (std::string given :
           {allOfDocuments, keys[i % std::size(keys)].c_str()}) {
        strategy.documents = given;
        checkStrategy(model.text, strategy);
      }
    }
  Strategy joined{.sequence = 8};
  for (const std::string &key : keys)
    for (const Model &model : models()) {
      Strategy with{.sequence = 8, .documents = key};
      EXPECT_NE(compareSteps(expectedStep(model.text, with, 12),
                             expectedStep(model.text, joined, 12), 1e-4),
                "")
          << model.name << ": " << key << " changed nothing";
    }
}

/// Stages of one rank or of several, in lines, loops and there and back; each
/// with other strategies inside. A tied head is on the first and the last rank.
TEST(Pipelines, MeanWhatOneRankMeans) {
  const char *v2 = "schedule = \"interleaved-1f1b\"\nvirtual_stages = 2",
             *split = "schedule = \"zb-h1\"", *shaped = "schedule = \"zb-v\"";
  Strategy both = allAxes;
  both.fsdp = 1;
  both.zeroAxes = {"dp"};
  both.pp = 2;
  std::vector<Strategy> strategies = {
      {.pp = 2},
      {.pp = 2, .pipeline = "layers = [1, 3]"},
      {.pp = 2, .pipeline = v2},
      {.pp = 2, .pipeline = split},
      {.pp = 2, .pipeline = shaped},
      {.dp = 2, .pp = 2},
      {.dp = 4, .zero = 1, .zeroAxes = {"dp"}, .pp = 2, .pipeline = v2},
      {.dp = 2, .zero = 2, .zeroAxes = {"dp"}, .pp = 2, .pipeline = split},
      {.dp = 2, .zero = 3, .zeroAxes = {"dp"}, .pp = 2, .pipeline = shaped},
      {.tp = 2, .pp = 2, .pipeline = split},
      {.tp = 2, .sequenceParallel = true, .pp = 2, .pipeline = v2},
      {.dp = 2, .documents = allOfDocuments, .pp = 2},
      {.documents = allOfDocuments, .pp = 2, .pipeline = v2},
      {.documents = allOfDocuments, .pp = 2, .pipeline = shaped},
      both};
  for (const std::string &model :
       {tinyGpt2({.layers = 4}),
        tinyLlama({.keyHeads = 2, .tied = true, .layers = 4}),
        tinyLlama({.keyHeads = 2, .layers = 4})})
    for (const Strategy &strategy : strategies)
      checkStrategy(model, strategy);
  for (const char *schedule : {"", split, v2, shaped})
    checkStrategy(tinyLlama({.keyHeads = 1, .layers = 8}),
                  {.pp = 4, .pipeline = schedule});
  // Ranks between those of the tied ends add nothing.
  checkStrategy(tinyGpt2({.layers = 4}), {.pp = 4});
  checkStrategy(tinyGpt2({.layers = 3}),
                {.dp = 2, .zero = 3, .zeroAxes = {"dp"}, .pp = 3});
}

/// A loss that is no sum over ranks, like a square, is computed from whole
/// ones; one that is, is one.
TEST(Losses, AreThoseOfOneRank) {
  for (auto [name, loss] : losses()) {
    SCOPED_TRACE(name);
    std::string model =
        withLoss(tinyLlama({.keyHeads = 2, .tied = true}), "norm_weight", loss);
    for (const Strategy &strategy :
         {Strategy{.dp = 4}, Strategy{.tp = 4},
          Strategy{.tp = 2, .sequenceParallel = true},
          Strategy{.fsdp = 2, .zero = 3, .zeroAxes = {"fsdp"}}, allAxes})
      checkStrategy(model, strategy);
  }
}

/// The model with the names of its dims changed about: what was called `ffn` is
/// now called `heads`, and so on. A spec's rules then split other dims.
std::string withSwappedNames(const std::string &model) {
  const std::map<std::string, std::string> names = {
      {"heads", "ffn"},      {"ffn", "heads"},      {"kv_heads", "vocab"},
      {"vocab", "kv_heads"}, {"embed", "head_dim"}, {"head_dim", "embed"}};
  std::string result;
  llvm::StringRef rest = model;
  constexpr llvm::StringLiteral begin = "#transformer.dims<";
  for (size_t at = rest.find(begin); at != llvm::StringRef::npos;
       at = rest.find(begin)) {
    result += rest.take_front(at + begin.size());
    rest = rest.drop_front(at + begin.size());
    llvm::StringRef dims = rest.take_until([](char c) { return c == '>'; });
    llvm::SmallVector<std::string> changed;
    for (llvm::StringRef dim : llvm::split(dims, ", ")) {
      auto known = names.find(dim.str());
      changed.push_back(known == names.end() ? dim.str() : known->second);
    }
    result += llvm::join(changed, ", ");
    rest = rest.drop_front(dims.size());
  }
  return result + rest.str();
}

/// What a dim is for is told by the ops that read it, not by its name. With all
/// rules for "tp" the same dims are split whatever they are called; blocks of
/// what is called heads may be short, and heads are whole whatever they are
/// called.
TEST(Names, DecideNothing) {
  std::vector<Strategy> strategies = {
      {.dp = 2},
      {.tp = 2, .sequenceParallel = true},
      {.tp = 4},
      {.dp = 2, .tp = 2, .sequenceParallel = true, .pp = 2},
      allAxes};
  for (const std::string &model :
       {tinyGpt2({.vocabulary = 13, .ffn = 10, .layers = 2}),
        tinyLlama({.keyHeads = 2, .vocabulary = 13, .ffn = 10, .layers = 2}),
        tinyLlama({.keyHeads = 1, .vocabulary = 13, .ffn = 10, .layers = 2})}) {
    std::string swapped = withSwappedNames(model);
    EXPECT_NE(swapped, model);
    for (const Strategy &strategy : strategies) {
      checkStrategy(swapped, strategy, 13);
      EXPECT_EQ(compareSteps(expectedStep(swapped, strategy, 13),
                             expectedStep(model, strategy, 13)),
                "");
    }
  }
}

/// A key of [precision] that rounds. Each strategy means what one rank means,
/// and one rank means something else without the key.
void checkRounding(const std::string &model, std::vector<Strategy> strategies,
                   const std::string &compute, const std::string &key,
                   int64_t sequence) {
  strategies.push_back(allAxes);
  for (Strategy &strategy : strategies) {
    strategy.sequence = sequence;
    strategy.precision = compute + "\n" + key;
    checkStrategy(model, strategy);
  }
  Strategy plain = strategies[0];
  plain.precision = compute;
  EXPECT_NE(compareSteps(expectedStep(model, strategies[0], 12),
                         expectedStep(model, plain, 12), 1e-4),
            "")
      << "nothing was rounded";
}

/// A weight drawn elsewhere than at its place in the whole tensor would be off
/// by bf16's last place, a million times what is allowed.
TEST(StochasticRounding, IsThatOfOneRank) {
  checkRounding(tinyLlama({.keyHeads = 2, .tied = true}),
                {{.dp = 2},
                 {.tp = 4},
                 {.dp = 2, .zero = 1, .zeroAxes = {"dp"}},
                 {.dp = 4, .zero = 3, .zeroAxes = {"dp"}}},
                "compute = \"bf16\"", "rounding = \"stochastic\"", 4);
}

/// A scale that were not of the whole tensor would round otherwise, by 2^-4 of
/// an element, where sums in double precision differ by 2^-50.
TEST(Float8, IsThatOfOneRank) {
  checkRounding(
      tinyLlama({.keyHeads = 2, .tied = true, .ffn = 32, .hidden = 64}),
      {{.dp = 2},
       {.tp = 2},
       {.tp = 2, .sequenceParallel = true},
       {.dp = 2, .zero = 1, .zeroAxes = {"dp"}},
       {.dp = 2, .zero = 3, .zeroAxes = {"dp"}}},
      "compute = \"f32\"", "matmul = \"fp8\"", 8);
}

/// Scales are there before the step; what it finds goes to the next.
TEST(Float8, RemembersWhatOneRankRemembers) {
  checkRounding(
      tinyLlama({.keyHeads = 2, .tied = true, .ffn = 32, .hidden = 64}),
      {{.dp = 2},
       {.tp = 2},
       {.tp = 2, .sequenceParallel = true},
       {.dp = 2, .zero = 3, .zeroAxes = {"dp"}}},
      "compute = \"f32\"", "matmul = \"fp8\"\nscaling = \"delayed\"", 8);
}

} // namespace
