// Which value a query means.
#include "lib/Explain/Names.h"
#include "Loaded.h"
#include "absl/strings/str_join.h"
#include "lib/Explain/Why.h"
#include "meshwork/Plan/LayerNames.h"

namespace meshwork::explain::test {
namespace {

Loaded withNames(const std::vector<std::string> &names) {
  auto plan = plan::test::tinyPlan();
  auto &parameters = plan.programs[0]->parameters;
  parameters[0]->name = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    // A buffer of its own name is enough to be found.
    plan.programs[0]->buffers.push_back(std::make_unique<plan::BufferT>());
    plan.programs[0]->buffers.back()->name = names[i];
    plan.programs[0]->buffers.back()->persistent = true;
  }
  return Loaded(plan);
}

std::string found(const Loaded &file, const char *query) {
  auto names = findNames(file.plan(), query);
  return names.ok() ? absl::StrJoin(*names, " ")
                    : "error: " + std::string(names.status().message());
}

TEST(LayerNames, areFoundByTheLayerAlone) {
  EXPECT_EQ(plan::overLayers("model.layers.7.mlp", 7), "model.layers.*.mlp");
  EXPECT_EQ(plan::overLayers("h.7.experts.7.w (gradient)", 7),
            "h.*.experts.7.w (gradient)");
  EXPECT_EQ(plan::overLayers("7", 7), "*");
  EXPECT_EQ(plan::overLayers("ln.2147483647.weight", -1),
            "ln.2147483647.weight");
  EXPECT_EQ(plan::overLayers("h.17.w", 7), "h.17.w");
  EXPECT_EQ(plan::overLayers("", 0), "");
  auto [scope, leaf] = plan::splitAtLayer("model.layers.0.mlp", 0);
  EXPECT_EQ(scope, "model.layers.0");
  EXPECT_EQ(leaf, ".mlp");
}

/// Names that look like states, but name none that the parameter declares, are
/// values of their own.
TEST(Why, isToldOfTheStatesThatAParameterDeclares) {
  auto plan = plan::test::tinyPlan();
  plan.provenance = std::make_unique<plan::ProvenanceT>();
  plan.provenance->scopes = {""};
  plan.provenance->stories.push_back(std::make_unique<plan::ValueStoryT>());
  plan.provenance->leaves = {"wte.weight",
                             "wte.weight (gradient)",
                             "wte.weight (slot)",
                             "wte.weight (gradient of a microbatch)",
                             "wte.weight (guess)",
                             "wte.weight (gradient)/map",
                             "wte",
                             "wte (input gradient)",
                             "wte.weight (master)",
                             "wte (gradient)"};
  for (uint32_t leaf = 0; leaf < plan.provenance->leaves.size(); ++leaf)
    plan.provenance->values.emplace_back(0, leaf, 0);
  plan::test::keep(
      *plan.programs[0]->parameters[0], "slot",
      plan::test::stateOf(*plan.programs[0]->parameters[0], "master")
          .part->view)
      .role = plan::StateRole::optimizer;
  Loaded file(plan);
  Why why(file.plan());
  EXPECT_EQ(why.about("wte.weight"), (std::vector<uint32_t>{0, 1, 2, 3, 8}));
  EXPECT_EQ(why.about("wte"), (std::vector<uint32_t>{6, 7}));
}

TEST(Names, globs) {
  EXPECT_TRUE(matchesGlob("h.*.weight", "h.0.mlp.weight"));
  EXPECT_TRUE(matchesGlob("*", ""));
  EXPECT_TRUE(matchesGlob("a?c*", "abc"));
  EXPECT_FALSE(matchesGlob("a?c", "ac"));
  EXPECT_FALSE(matchesGlob("h.*.bias", "h.0.mlp.weight"));
  // Many stars on a long text take no more than length times length.
  EXPECT_FALSE(matchesGlob("*a*a*a*a*a*a*a*a*b", std::string(20000, 'a')));
}

TEST(Names, wholeThenEndThenGlob) {
  Loaded file = withNames({"h.1.c.weight", "h.11.c.weight", "weight", "t7"});
  EXPECT_EQ(found(file, "weight"), "weight"); // whole, though it ends others
  EXPECT_EQ(found(file, "1.c.weight"), "h.1.c.weight"); // not h.11
  EXPECT_EQ(found(file, "11.c.weight"), "h.11.c.weight");
  EXPECT_EQ(found(file, "h.1.*"), "h.1.c.weight");
  EXPECT_EQ(found(file, "t?"), "t7");
  Loaded buffers = withNames({"p", "h.1.c.weight", "h.11.c.weight"});
  EXPECT_EQ(found(buffers, "h.*.weight"), "h.1.c.weight h.11.c.weight");
}

TEST(Names, parametersComeBeforeBuffers) {
  Loaded file = withNames({"a.c.weight", "b.c.weight"});
  EXPECT_EQ(found(file, "c.weight"), "a.c.weight");
}

TEST(Names, errorsNameWhatIsNear) {
  Loaded file = withNames({"wte.weight", "t1", "t2", "t3"});
  EXPECT_HAS(found(file, "wte.wieght"), "did you mean \"wte.weight\"?");
  EXPECT_HAS(found(file, "te.wei"), "it is part of wte.weight");
  EXPECT_HAS(found(file, "nothing like it"), "parameters are wte.weight");
  EXPECT_HAS(found(file, ""), "no parameter, value or buffer");
  Loaded layers = withNames({"p", "h.1.w", "h.2.w"});
  EXPECT_HAS(found(layers, "w"), "means 2 values: h.1.w, h.2.w");
  EXPECT_HAS(found(layers, "w"), "with a pattern, like \"*w\"");
  EXPECT_EQ(found(layers, "*w"), "h.1.w h.2.w");
  EXPECT_HAS(found(file, "\x1b[2J"), "\\x1b[2J");
}

} // namespace
} // namespace meshwork::explain::test
