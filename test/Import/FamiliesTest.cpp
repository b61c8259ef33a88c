// What is special of families that ImportTest.cpp does not have.
#include "test/Import/TestConfigs.h"

namespace meshwork::importer {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string saidOf(const std::string &keys, const std::string &more = "") {
  return textOf(importKeys(keys, more).diagnostics);
}

TEST(ImportStarcoder2, HasLayerNormAndNoGate) {
  std::string keys = llamaKeys("starcoder2");
  std::string model = modelOf(keys);
  for (const char *name :
       {"model.embed_tokens.weight", "model.layers.1.input_layernorm.bias",
        "model.layers.0.self_attn.o_proj.bias",
        "model.layers.0.mlp.c_fc.weight", "model.layers.1.mlp.c_proj.bias",
        "model.norm.bias"})
    EXPECT_EQ(countOf(model, std::string("parameter \"") + name + "\""), 1u)
        << name;
  EXPECT_THAT(model, HasSubstr("init <normal, 0.0, 0.018042>"));
  EXPECT_THAT(model, HasSubstr("activate gelu_tanh"));
  EXPECT_THAT(model, Not(HasSubstr("lm_head")));
  EXPECT_THAT(modelOf(keys, "\"use_bias\": false"),
              Not(HasSubstr("proj.bias")));
  EXPECT_EQ(countOf(modelOf(keys, "\"sliding_window\": 16"), " window 16 "),
            2u);
  EXPECT_THAT(saidOf(keys, "\"mlp_type\": \"gated\""),
              HasSubstr("mlp_type: found \"gated\""));
}

/// The rates of the published files.
TEST(ImportStarcoder2, DropoutHasNamesOfItsOwnAndIsTold) {
  Result result = importKeys(llamaKeys("starcoder2"),
                             "\"attention_dropout\": 0.1, \"residual_dropout\":"
                             " 0.2, \"embedding_dropout\": 0.3, \"norm_type\": "
                             "\"layer_norm\", \"layer_norm_epsilon\": 1e-05");
  for (const char *place :
       {"\"model.embedding_dropout\" rate 0.3",
        "\"model.layers.1.self_attn.residual_dropout\" rate 0.2",
        "\"model.layers.1.mlp.residual_dropout\" rate 0.2",
        "\"model.layers.1.self_attn.attention_dropout\" rate 0.1"})
    EXPECT_EQ(countOf(*result.model, place), 1u) << place;
  EXPECT_EQ(textOf(result.diagnostics),
            "config.json: note: dropout: training drops activations at random "
            "(attention_dropout 0.1, residual_dropout 0.2, embedding_dropout "
            "0.3); set these keys to 0 to train without\n");
}

const std::string optKeys =
    R"("model_type": "opt", "vocab_size": 100, "hidden_size": 24, "ffn_dim": 40,
       "num_hidden_layers": 2, "num_attention_heads": 8,
       "max_position_embeddings": 32, "dropout": 0.0)";

/// Heads of 3 elements, since none turns.
TEST(ImportOpt, LearnsPositionsFromRowTwoOn) {
  std::string model = modelOf(optKeys);
  for (const char *name :
       {"model.decoder.embed_tokens.weight",
        "model.decoder.layers.0.self_attn_layer_norm.weight",
        "model.decoder.layers.0.self_attn.out_proj.bias",
        "model.decoder.layers.1.fc1.weight", "model.decoder.layers.1.fc2.bias",
        "model.decoder.layers.1.final_layer_norm.bias",
        "model.decoder.final_layer_norm.bias"})
    EXPECT_EQ(countOf(model, std::string("parameter \"") + name + "\""), 1u)
        << name;
  EXPECT_THAT(model, HasSubstr("embed_positions.weight\" init <normal, 0.0, "
                               "0.02> : tensor<34x24xf32"));
  EXPECT_THAT(model, HasSubstr("dim \"positions\" offset 2 :"));
  EXPECT_THAT(model, HasSubstr("activate relu"));
  EXPECT_THAT(model, HasSubstr("%tokens padding 1 :"));
  EXPECT_THAT(model, Not(HasSubstr("lm_head")));
  EXPECT_THAT(modelOf(optKeys, "\"enable_bias\": false"),
              Not(HasSubstr("fc1.bias")));
  EXPECT_THAT(modelOf(optKeys, "\"init_std\": 0.006"),
              HasSubstr("<normal, 0.0, 0.006>"));
  EXPECT_THAT(saidOf(with(optKeys, "dropout", "0.1 ").append(" ")),
              HasSubstr("note: dropout"));
}

/// OPT-350M's keys are among them.
TEST(ImportOpt, RefusesItsOtherVariantsByName) {
  EXPECT_THAT(saidOf(optKeys, "\"do_layer_norm_before\": false"),
              HasSubstr("do_layer_norm_before: found false, norms behind"));
  EXPECT_THAT(saidOf(optKeys, "\"word_embed_proj_dim\": 512"),
              HasSubstr("word_embed_proj_dim: found 512, embeddings that a "
                        "matrix makes wider"));
  EXPECT_THAT(saidOf(optKeys, "\"_remove_final_layer_norm\": true"),
              HasSubstr("_remove_final_layer_norm: found true, no norm"));
  EXPECT_THAT(saidOf(optKeys, "\"layer_norm_elementwise_affine\": false"),
              HasSubstr("layer_norm_elementwise_affine: found false"));
  EXPECT_THAT(saidOf(optKeys, "\"layerdrop\": 0.1"),
              HasSubstr("layerdrop: found 0.1"));
  EXPECT_THAT(saidOf(optKeys, "\"rope_theta\": 10000"),
              HasSubstr("rope_theta: unknown key"));
  EXPECT_THAT(saidOf(with(optKeys, "max_position_embeddings", "null")),
              HasSubstr("max_position_embeddings: found null"));
  EXPECT_EQ(saidOf(optKeys, R"("_remove_final_layer_norm": false,
      "activation_dropout": 0.0, "do_layer_norm_before": true, "layerdrop": 0.0,
      "word_embed_proj_dim": 24, "prefix": "</s>")"),
            "");
}

TEST(ImportSeedOss, HasBiasesOfQkvAloneAndDropsByDefault) {
  Result result = importKeys(llamaKeys("seed_oss"));
  EXPECT_EQ(countOf(*result.model, "_proj.bias\""), 2u * 3);
  EXPECT_EQ(countOf(*result.model, "residual_dropout\" rate 0.1"), 4u);
  EXPECT_EQ(countOf(*result.model, "attention_dropout\" rate 0.1"), 2u);
  EXPECT_THAT(textOf(result.diagnostics),
              HasSubstr("(attention_dropout 0.1, residual_dropout 0.1)"));
  std::string still = "\"attention_dropout\": 0.0, \"residual_dropout\": 0.0, ";
  EXPECT_EQ(countOf(modelOf(llamaKeys("seed_oss"),
                            still + "\"attention_bias\": false, "
                                    "\"attention_out_bias\": true"),
                    "_proj.bias\""),
            2u);
  EXPECT_EQ(saidOf(llamaKeys("seed_oss"), still + "\"mlp_bias\": false"), "");
}

TEST(ImportExaone4, LayersWithoutAWindowHaveNoRotaryPositions) {
  std::string keys = with(llamaKeys("exaone4"), "num_hidden_layers", "4");
  std::string model = modelOf(keys);
  EXPECT_EQ(countOf(model, " window 4096 "), 3u);
  EXPECT_EQ(countOf(model, "transformer.rope "), 2u * 3);
  EXPECT_THAT(model, Not(HasSubstr("%l3_q = transformer.rope")));
  EXPECT_THAT(model, HasSubstr("l0_q_norm"));
  EXPECT_THAT(model, HasSubstr("add %embedded, %l0_post_attention_norm"));
  model = modelOf(keys, "\"sliding_window\": null");
  EXPECT_EQ(countOf(model, " window "), 0u);
  EXPECT_EQ(countOf(model, "transformer.rope "), 2u * 4);
  EXPECT_EQ(countOf(modelOf(keys, "\"sliding_window_pattern\": 2"), " window "),
            2u);
  // As in the files of 32B.
  std::string types = R"("layer_types": ["full_attention", "sliding_attention",
                         "sliding_attention", "sliding_attention"])";
  std::string letters = "\"sliding_window_pattern\": \"LLLG\"";
  EXPECT_THAT(modelOf(keys, letters + ", " + types),
              Not(HasSubstr("%l0_q = transformer.rope")));
  EXPECT_THAT(saidOf(keys, letters),
              HasSubstr("sliding_window_pattern: found \"LLLG\""));
}

TEST(ImportGemma2, CapsScoresAndLogitsAndEveryOtherLayerSlides) {
  std::string keys = with(llamaKeys("gemma2"), "num_hidden_layers", "3");
  std::string model = modelOf(keys);
  EXPECT_EQ(countOf(model, " causal scale 0.0625 cap 50.0 window 4096 :"), 2u);
  EXPECT_EQ(countOf(model, " causal scale 0.0625 cap 50.0 :"), 1u);
  EXPECT_THAT(model, HasSubstr("%targets scale 1.0 cap 30.0 :"));
  EXPECT_THAT(model, HasSubstr("l2_post_feedforward_norm"));
  EXPECT_THAT(modelOf(keys, "\"attn_logit_softcapping\": null, "
                            "\"final_logit_softcapping\": null"),
              Not(HasSubstr(" cap ")));
  EXPECT_EQ(
      countOf(modelOf(keys, "\"attn_logit_softcapping\": 20"), " cap 20.0 "),
      3u);
}

TEST(ImportGemma2, RefusesWhatIsNoCapOrWindow) {
  std::string keys = llamaKeys("gemma2");
  for (const char *value : {"0", "-1", "\"50\"", "1e300"})
    EXPECT_THAT(
        saidOf(keys, std::string("\"final_logit_softcapping\": ") + value),
        HasSubstr("final_logit_softcapping: found "));
  EXPECT_THAT(saidOf(keys, "\"sliding_window\": null"),
              HasSubstr("sliding_window: found null"));
  // As in the files of 9B and 27B.
  EXPECT_EQ(saidOf(keys, R"("hidden_act": "gelu_pytorch_tanh",
      "cache_implementation": "hybrid", "sliding_window_size": 4096)"),
            "");
}

} // namespace
} // namespace meshwork::importer
