// Errors of an imported model name layers and tensors, not lines of a text that
// nobody has.
#include <gtest/gtest.h>

#include "dialects/transformer/Transformer.h"
#include "lib/Import/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "tools/meshwork/driver/ImportedPlaces.h"

using namespace mlir;
namespace meshwork::driver {
namespace {

constexpr const char *config = R"({"model_type": "llama",
  "architectures": ["LlamaForCausalLM"], "vocab_size": 32, "hidden_size": 8,
  "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
  "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": false})";

class ImportedPlacesTest : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
    importer::Result model = importer::importConfig(config, "c.json");
    ASSERT_TRUE(model.model) << textOf(model.diagnostics);
    module = parseSourceString<ModuleOp>(*model.model, &context, "c.json");
    ASSERT_TRUE(module);
    places.emplace(*module, "c.json");
  }
  /// What is said of an error and a note at `at`.
  std::string said(mlir::Location at) {
    testing::internal::CaptureStderr();
    {
      InFlightDiagnostic error = emitError(at) << "is wrong";
      error.attachNote(at) << "see here";
    }
    return testing::internal::GetCapturedStderr();
  }
  template <typename Op> SmallVector<Op> all() {
    SmallVector<Op> ops;
    module->walk([&](Op op) { ops.push_back(op); });
    return ops;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::optional<ImportedPlaces> places;
};

TEST_F(ImportedPlacesTest, NameLayersAndTensors) {
  EXPECT_EQ(said(all<transformer::AttentionOp>()[1].getLoc()),
            "c.json: error: layer 1: is wrong\n"
            "c.json: note: layer 1: see here\n");
  auto norms = all<transformer::RmsNormOp>();
  EXPECT_EQ(said(norms.front().getLoc()),
            "c.json: error: layer 0, "
            "\"model.layers.0.input_layernorm.weight\": is wrong\n"
            "c.json: note: layer 0, "
            "\"model.layers.0.input_layernorm.weight\": see here\n");
  EXPECT_EQ(said(norms.back().getLoc()),
            "c.json: error: \"model.norm.weight\": is wrong\n"
            "c.json: note: \"model.norm.weight\": see here\n");
  // What passes made of an op is at its place.
  mlir::Location made = FusedLoc::get(
      &context, {UnknownLoc::get(&context), norms.back().getLoc()});
  EXPECT_EQ(said(made).find("c.json: error: \"model.norm.weight\": "), 0u);
}

TEST_F(ImportedPlacesTest, OtherTextsKeepTheirLines) {
  mlir::Location other = FileLineColLoc::get(&context, "m.mlir", 3, 5);
  EXPECT_NE(said(other).find("m.mlir"), std::string::npos);
}

} // namespace
} // namespace meshwork::driver
