#include "lib/Import/Hub.h"
#include "test/Import/TestConfigs.h"

namespace meshwork::importer {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ImportGpt2, HasTheParametersOfTheFiles) {
  std::string model = modelOf(gpt2Keys);
  for (const char *name :
       {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias",
        "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias",
        "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias", "h.0.ln_2.weight",
        "h.0.ln_2.bias", "h.0.mlp.c_fc.weight", "h.0.mlp.c_fc.bias",
        "h.0.mlp.c_proj.weight", "h.0.mlp.c_proj.bias", "h.1.mlp.c_proj.bias",
        "ln_f.weight", "ln_f.bias"})
    EXPECT_EQ(countOf(model, std::string("parameter \"") + name + "\""), 1u)
        << name;
  EXPECT_EQ(countOf(model, "transformer.parameter"), 2u + 2 * 12 + 2);
  // 100*24 + 32*24 + 2 * (4*24 + 24*72 + 72 + 24*24 + 24 + 24*96 + 96 + 96*24 +
  // 24) + 2*24.
  EXPECT_THAT(model, HasSubstr("2 layers, 17664 parameters."));
}

TEST(ImportConfig, KeepsItsTextWithTheModel) {
  std::string odd = R"("_name_or_path": "a \\ \"b\" : c", "bos_token_id":
      [ 1 ,2 ], "initializer_range": 1e-05)";
  for (const std::string &keys :
       {llamaKeys("llama") + "," + odd, gpt2Keys + "," + odd}) {
    std::string model = modelOf(keys);
    EXPECT_THAT(
        model,
        HasSubstr(
            R"(\"_name_or_path\":\"a \\\\ \\\"b\\\" : c\",\"bos_token_id\":[1,2],)"
            R"(\"initializer_range\":1e-05}"})"));
    EXPECT_THAT(model, HasSubstr(R"(transformer.config = "{\"model_type\":)"));
  }
}

TEST(HubConfig, TellsTypeAndClassAndKeepsTheRest) {
  std::string config = "{" + llamaKeys("qwen3") +
                       R"(, "zeta": [1.5, 1e-05], "torch_dtype": "float32"})";
  std::string made = hubConfig(config, "bfloat16");
  EXPECT_THAT(made, HasSubstr("\"torch_dtype\": \"bfloat16\""));
  EXPECT_THAT(made,
              HasSubstr("\"architectures\": [\n    \"Qwen3ForCausalLM\""));
  EXPECT_THAT(made, HasSubstr("1e-05"));
  EXPECT_LT(made.find("model_type"), made.find("zeta"));
  EXPECT_THAT(made, Not(HasSubstr("\"dtype\"")));
  // The newer name alone stays alone; a class that is named stays.
  made = hubConfig("{" + gpt2Keys + R"(, "dtype": "float32",
                   "architectures": ["MyLMHeadModel"]})",
                   "float16");
  EXPECT_THAT(made, HasSubstr("\"dtype\": \"float16\""));
  EXPECT_THAT(made, Not(HasSubstr("torch_dtype")));
  EXPECT_THAT(made, Not(HasSubstr("GPT2LMHeadModel")));
}

TEST(HubName, IsThatOfTheWholeModel) {
  std::string gpt2 = "{" + gpt2Keys + "}";
  EXPECT_EQ(hubName(gpt2, "h.0.ln_1.bias"), "transformer.h.0.ln_1.bias");
  EXPECT_EQ(hubName(gpt2, "lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(hubName("{" + llamaKeys("llama") + "}", "model.norm.weight"),
            "model.norm.weight");
}

TEST(ImportGpt2, ComputesWhatGpt2Computes) {
  std::string model = modelOf(gpt2Keys);
  EXPECT_THAT(model, HasSubstr("causal scale 0.35355339059327373 :"));
  EXPECT_THAT(model, HasSubstr("activate gelu_tanh"));
  EXPECT_THAT(model, HasSubstr("epsilon 1.0e-05"));
  EXPECT_THAT(model, HasSubstr("slice %wpe dim \"positions\" offset 0"));
  EXPECT_THAT(model, HasSubstr("head_loss %ln_f, %wte, %targets"));
  EXPECT_THAT(
      model,
      HasSubstr("h.1.attn.c_proj.weight\" layer 1 init <normal, 0.0, 0.01> "
                "file_shape [24, 24]"));
  EXPECT_THAT(
      model,
      HasSubstr("h.0.attn.c_attn.weight\" layer 0 init <normal, 0.0, 0.02> "
                "file_shape [24, 72]"));
  EXPECT_THAT(model, Not(HasSubstr("dropout")));
}

TEST(ImportGpt2, DropoutStandsWhereGpt2HasIt) {
  std::string keys =
      with(with(with(gpt2Keys, "resid_pdrop", "0.1"), "embd_pdrop", "0.2"),
           "n_layer", "1");
  std::string model =
      modelOf(keys.substr(0, keys.rfind(',')), "\"attn_pdrop\": 0.3");
  EXPECT_THAT(model, HasSubstr("dropout %placed \"drop\" rate 0.2 "));
  EXPECT_THAT(model, HasSubstr("dropout \"h.0.attn.attn_dropout\" rate 0.3 "));
  EXPECT_THAT(model,
              HasSubstr("dropout %h0_attn_out \"h.0.attn.resid_dropout\" "
                        "rate 0.1 "));
  EXPECT_THAT(model, HasSubstr("dropout %h0_mlp_out \"h.0.mlp.dropout\" rate "
                               "0.1 "));
  // Hugging Face's default, when the keys are absent.
  model = modelOf(gpt2Keys.substr(0, gpt2Keys.find(", \"resid_pdrop\"")));
  EXPECT_EQ(countOf(model, "rate 0.1 "), 1u + 3 * 2);
}

TEST(ImportGpt2, ObeysTheOtherKeys) {
  EXPECT_THAT(modelOf(gpt2Keys, "\"n_inner\": 40"), HasSubstr("24x40xf32"));
  EXPECT_THAT(modelOf(gpt2Keys, "\"activation_function\": \"gelu\""),
              HasSubstr("activate gelu %"));
  EXPECT_THAT(modelOf(gpt2Keys, "\"scale_attn_weights\": false"),
              HasSubstr("causal scale 1.0 :"));
  std::string model =
      modelOf(gpt2Keys, "\"scale_attn_weights\": false, "
                        "\"scale_attn_by_inverse_layer_idx\": true");
  EXPECT_THAT(model, HasSubstr("%h0_v causal scale 1.0 :"));
  EXPECT_THAT(model, HasSubstr("%h1_v causal scale 0.5 :"));
  model = modelOf(gpt2Keys, "\"tie_word_embeddings\": false");
  EXPECT_THAT(model, HasSubstr("head_loss %ln_f, %lm_head, %targets"));
  EXPECT_THAT(modelOf(gpt2Keys, "\"layer_norm_epsilon\": 1e-12"),
              HasSubstr("epsilon 1.0e-12"));
}

TEST(ImportGpt2, TakesTransformersOtherNames) {
  Result result = importKeys(
      R"("model_type": "gpt2", "vocab_size": 100, "hidden_size": 24,
         "max_position_embeddings": 32, "num_hidden_layers": 2,
         "num_attention_heads": 3, "n_head": 3, "resid_pdrop": 0,
         "embd_pdrop": 0, "attn_pdrop": 0, "pad_token_id": 7)");
  EXPECT_EQ(textOf(result.diagnostics), "");
  // GPT-2 pads with no row.
  EXPECT_EQ(mathOf(*result.model), mathOf(modelOf(gpt2Keys)));
}

TEST(ImportLlama, HasTheParametersOfTheFiles) {
  std::string model = modelOf(llamaKeys("llama"));
  for (const char *name :
       {"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.0.self_attn.o_proj.weight",
        "model.layers.1.post_attention_layernorm.weight",
        "model.layers.1.mlp.gate_proj.weight",
        "model.layers.1.mlp.up_proj.weight",
        "model.layers.1.mlp.down_proj.weight", "model.norm.weight",
        "lm_head.weight"})
    EXPECT_EQ(countOf(model, std::string("parameter \"") + name + "\""), 1u)
        << name;
  EXPECT_EQ(countOf(model, "transformer.parameter"), 3u + 2 * 9);
  EXPECT_THAT(
      model,
      HasSubstr(
          "layers.0.self_attn.k_proj.weight\" layer 0 init <normal, 0.0, 0.02> "
          "file_shape [16, 32] : tensor<2x8x32xf32, "
          "#transformer.dims<kv_heads, head_dim, embed>>"));
  EXPECT_THAT(
      model,
      HasSubstr(
          "layers.0.self_attn.o_proj.weight\" layer 0 init <normal, 0.0, 0.02> "
          "file_shape [32, 32] : tensor<32x4x8xf32, "
          "#transformer.dims<embed, heads, head_dim>>"));
  EXPECT_THAT(model, HasSubstr("activate silu %l0_gate_proj"));
  EXPECT_EQ(countOf(model, "transformer.rope"), 4u);
}

TEST(ImportLlama, ObeysTheOtherKeys) {
  std::string keys = llamaKeys("llama");
  std::string model = modelOf(keys, "\"attention_bias\": true");
  EXPECT_EQ(countOf(model, "_proj.bias\""), 8u);
  model = modelOf(keys, "\"mlp_bias\": true");
  EXPECT_EQ(countOf(model, "_proj.bias\""), 6u);
  model = modelOf(keys, "\"tie_word_embeddings\": true");
  EXPECT_THAT(model, HasSubstr("head_loss %norm, %embed_tokens"));
  model = modelOf(keys, "\"attention_dropout\": 0.25");
  EXPECT_EQ(countOf(model, "attention_dropout\" rate 0.25"), 2u);
  model = modelOf(with(keys, "num_key_value_heads", "4"));
  EXPECT_THAT(model, Not(HasSubstr("kv_heads")));
  model =
      modelOf(with(with(keys, "head_dim", "null"), "num_attention_heads", "2"));
  EXPECT_THAT(model, HasSubstr("2x16xf32"));
}

TEST(ImportLlama, FamiliesDiffer) {
  std::string qwen2 = modelOf(llamaKeys("qwen2"));
  EXPECT_EQ(countOf(qwen2, "_proj.bias\""), 6u);
  EXPECT_THAT(qwen2, Not(HasSubstr("o_proj.bias")));
  std::string qwen3 = modelOf(llamaKeys("qwen3"));
  EXPECT_THAT(qwen3, HasSubstr("rms_norm %l0_q_proj, %l0_q_norm_weight"));
  EXPECT_THAT(qwen3, HasSubstr("rope %l0_q_norm "));
  EXPECT_THAT(qwen3, Not(HasSubstr("bias")));
  std::string keys = llamaKeys("qwen3");
  size_t headDim = keys.find("\"head_dim\"");
  keys.erase(headDim, keys.find("\"max_position") - headDim);
  EXPECT_THAT(modelOf(keys), HasSubstr("4x128xf32"));
  std::string mistral = modelOf(llamaKeys("mistral"));
  EXPECT_EQ(countOf(mistral, " window 4096 "), 2u);
}

TEST(ImportGemma, AddsOneToNormsAndScalesEmbeddings) {
  std::string model = modelOf(llamaKeys("gemma"));
  EXPECT_THAT(model, HasSubstr("%factor = arith.constant 5.65685"));
  EXPECT_THAT(model, HasSubstr("input_layernorm.weight\" layer 0 init "
                               "<constant, 0.0>"));
  EXPECT_THAT(model, HasSubstr("rms_norm %embedded_scaled, "
                               "%l0_input_norm_factor epsilon"));
  EXPECT_THAT(model, HasSubstr("activate gelu_tanh"));
  EXPECT_THAT(model, HasSubstr("padding 0"));
  EXPECT_THAT(model, Not(HasSubstr("lm_head")));
  // Versions of Transformers go by one or the other.
  EXPECT_EQ(mathOf(modelOf(llamaKeys("gemma"),
                           R"("hidden_activation": "gelu_pytorch_tanh")")),
            mathOf(model));
  EXPECT_THAT(
      textOf(importKeys(llamaKeys("gemma"), R"("hidden_activation": "relu")")
                 .diagnostics),
      HasSubstr("hidden_activation: found \"relu\", but hidden_act"));
}

TEST(ImportGemma3, LocalLayersHaveAWindowAndARotaryBaseOfTheirOwn) {
  std::string keys = llamaKeys("gemma3_text");
  std::string more = R"("sliding_window": 16, "sliding_window_pattern": 2)";
  std::string model = modelOf(keys, more);
  EXPECT_EQ(countOf(model, " window 16 "), 1u);
  EXPECT_EQ(countOf(model, "inverse_frequencies [1.0, 0.1, "), 2u);
  EXPECT_EQ(mathOf(modelOf(keys, R"("sliding_window": 16, "layer_types":
      ["sliding_attention", "full_attention"])")),
            mathOf(model));
  EXPECT_EQ(countOf(modelOf(keys, more + ", \"rope_local_base_freq\": 1e6"),
                    "inverse_frequencies [1.0, 0.1, "),
            0u);
  EXPECT_THAT(modelOf(keys, more + ", \"query_pre_attn_scalar\": 64"),
              HasSubstr("causal scale 0.125 "));
  for (const char *name :
       {"post_attention_layernorm", "q_norm", "pre_feedforward_layernorm",
        "post_feedforward_layernorm"})
    EXPECT_EQ(countOf(model, std::string(name) + ".weight\""), 2u) << name;
  EXPECT_THAT(textOf(importKeys(keys, R"("attn_logit_softcapping": 50.0,
                  "final_logit_softcapping": 30.0)")
                         .diagnostics),
              testing::AllOf(HasSubstr("attn_logit_softcapping: found 50"),
                             HasSubstr("final_logit_softcapping: found 30")));
  EXPECT_THAT(textOf(importKeys(keys, "\"sliding_window\": null").diagnostics),
              HasSubstr("sliding_window: found null"));
}

TEST(ImportPhi3, HasOneMatrixForQkvAndOneForGateAndUp) {
  std::string keys = llamaKeys("phi3") + ", \"pad_token_id\": null";
  std::string model = modelOf(keys);
  EXPECT_THAT(model,
              HasSubstr("qkv_proj.weight\" layer 0 init <normal, 0.0, 0.02> "
                        "file_shape [64, 32] : tensor<8x8x32xf32, "
                        "#transformer.dims<qkv_heads, head_dim, embed>>"));
  EXPECT_THAT(model, HasSubstr("gate_up_proj.weight\" layer 0 init <normal, "
                               "0.0, 0.02> file_shape [96, 32] : "
                               "tensor<2x48x32xf32"));
  EXPECT_THAT(modelOf(with(keys, "num_key_value_heads", "4")),
              HasSubstr("tensor<3x4x8x32xf32, #transformer.dims<qkv, heads, "
                        "head_dim, embed>>"));
  EXPECT_THAT(modelOf(keys, "\"partial_rotary_factor\": 0.5"),
              HasSubstr("inverse_frequencies [1.0, 0.01] scale"));
  model = modelOf(keys, "\"resid_pdrop\": 0.1, \"embd_pdrop\": 0.3");
  EXPECT_THAT(model, HasSubstr("layers.0.resid_attn_dropout\" rate 0.1"));
  EXPECT_THAT(model, HasSubstr("layers.1.resid_mlp_dropout\" rate 0.1"));
  EXPECT_THAT(model, Not(HasSubstr("rate 0.3")));
  EXPECT_THAT(
      textOf(importKeys(keys, R"("rope_scaling": {"type": "linear",
             "factor": 2.0})")
                 .diagnostics),
      HasSubstr("rope_scaling: found an object, but phi3 knows \"longrope\""));
  EXPECT_THAT(
      textOf(importKeys(llamaKeys("phi3")).diagnostics),
      HasSubstr("pad_token_id: missing, so it is phi3's default 32000"));
}

TEST(ImportSmolLm3, SomeLayersHaveNoRotaryPositions) {
  std::string keys = llamaKeys("smollm3") + ", \"pad_token_id\": null";
  EXPECT_EQ(countOf(modelOf(keys), "transformer.rope"), 4u);
  EXPECT_EQ(countOf(modelOf(keys, "\"no_rope_layer_interval\": 2"),
                    "transformer.rope"),
            2u);
  std::string window = R"("use_sliding_window": true, "sliding_window": 16)";
  std::string model = modelOf(keys, window + ", \"no_rope_layers\": [0, 1]");
  EXPECT_EQ(countOf(model, "transformer.rope"), 2u);
  EXPECT_EQ(countOf(model, " window 16 "), 1u);
  EXPECT_LT(model.find(" window 16 "), model.find("transformer.rope"));
  for (const char *flags : {"[1]", "[1, 2]", "7"})
    EXPECT_THAT(
        textOf(importKeys(keys, std::string("\"no_rope_layers\": ") + flags)
                   .diagnostics),
        HasSubstr("no_rope_layers: found "));
}

TEST(ImportGranite, MultipliesAndDivides) {
  std::string keys = llamaKeys("granite");
  std::string model = modelOf(keys, R"("embedding_multiplier": 12.0,
      "attention_multiplier": 0.015625, "residual_multiplier": 0.22,
      "logits_scaling": 8.0)");
  EXPECT_THAT(model, HasSubstr("causal scale 0.015625 "));
  EXPECT_EQ(countOf(model, "arith.constant 12.0 "), 1u);
  EXPECT_EQ(countOf(model, "arith.constant 0.22 "), 4u);
  EXPECT_EQ(countOf(model, "arith.constant 0.125 "), 1u);
  EXPECT_THAT(model, HasSubstr("head_loss %head_input, "));
  EXPECT_THAT(modelOf(keys), HasSubstr("causal scale 1.0 "));
  for (const char *value : {"1e300", "1e-300"})
    EXPECT_THAT(
        textOf(importKeys(keys, std::string("\"logits_scaling\": ") + value)
                   .diagnostics),
        HasSubstr(std::string("logits_scaling: found ") + value[0]));
}

TEST(ImportOlmo2, HasNormsBehindAttentionAndFeedForward) {
  std::string model = modelOf(llamaKeys("olmo2") + ", \"pad_token_id\": null");
  EXPECT_THAT(model, Not(HasSubstr("input_layernorm")));
  EXPECT_THAT(model, HasSubstr("rms_norm %l0_o_proj, "
                               "%l0_post_attention_norm_weight"));
  EXPECT_THAT(model, HasSubstr("rms_norm %l0_down_proj, "
                               "%l0_post_feedforward_norm_weight"));
  EXPECT_THAT(model, HasSubstr("add %embedded, %l0_post_attention_norm"));
}

TEST(ImportOlmo, ClipsAndHasNormsWithoutWeights) {
  std::string keys = llamaKeys("olmo") + ", \"pad_token_id\": null";
  std::string model = modelOf(keys, "\"clip_qkv\": 8.0");
  EXPECT_THAT(model, Not(HasSubstr("norm.weight")));
  EXPECT_THAT(model, HasSubstr("standardize %embedded epsilon 1.0e-05"));
  EXPECT_EQ(countOf(model, "arith.constant -8.0 "), 6u);
  EXPECT_THAT(modelOf(keys), Not(HasSubstr("arith.")));
  EXPECT_THAT(textOf(importKeys(keys, "\"rms_norm_eps\": 1e-6").diagnostics),
              HasSubstr("rms_norm_eps: unknown key"));
}

TEST(ImportGptNeox, TurnsAPartOfEachHeadAndAddsBothBranchesToOneInput) {
  std::string keys = R"("model_type": "gpt_neox", "vocab_size": 100,
      "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
      "num_attention_heads": 2)";
  std::string model = modelOf(keys);
  for (const char *name :
       {"gpt_neox.embed_in.weight", "gpt_neox.layers.1.input_layernorm.bias",
        "gpt_neox.layers.0.attention.dense.bias",
        "gpt_neox.layers.0.mlp.dense_h_to_4h.bias",
        "gpt_neox.layers.0.mlp.dense_4h_to_h.weight",
        "gpt_neox.final_layer_norm.weight", "embed_out.weight"})
    EXPECT_EQ(countOf(model, std::string("parameter \"") + name + "\""), 1u)
        << name;
  EXPECT_THAT(model,
              HasSubstr("query_key_value.weight\" layer 0 init <normal, 0.0, "
                        "0.02> file_shape [96, 32] : tensor<2x3x16x32xf32, "
                        "#transformer.dims<heads, qkv, head_dim, embed>>"));
  EXPECT_THAT(model, HasSubstr("inverse_frequencies [1.0, 0.01] scale"));
  EXPECT_THAT(model, HasSubstr("layer_norm %embedded, "
                               "%l0_post_attention_norm_weight"));
  EXPECT_THAT(modelOf(keys, "\"use_parallel_residual\": false"),
              HasSubstr("layer_norm %l0_middle, "
                        "%l0_post_attention_norm_weight"));
  model = modelOf(keys, "\"hidden_dropout\": 0.1");
  EXPECT_THAT(model, HasSubstr("\"gpt_neox.emb_dropout\" rate 0.1"));
  EXPECT_EQ(countOf(model, " rate 0.1"), 5u);
  EXPECT_EQ(countOf(modelOf(keys, "\"attention_bias\": false"),
                    "attention.dense.bias"),
            0u);
}

TEST(ImportGptNeox, TwoNamesOfANumberAgree) {
  std::string keys = R"("model_type": "gpt_neox", "vocab_size": 100,
      "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
      "num_attention_heads": 2)";
  EXPECT_EQ(mathOf(modelOf(keys, R"("rope_theta": 10000,
                "partial_rotary_factor": 0.25)")),
            mathOf(modelOf(keys)));
  auto errors = [&](const std::string &more) {
    return textOf(importKeys(keys, more).diagnostics);
  };
  EXPECT_THAT(errors("\"rope_theta\": 5e5"),
              HasSubstr("rope_theta: found 5e+05, but gpt_neox goes by "
                        "rotary_emb_base"));
  EXPECT_THAT(errors("\"partial_rotary_factor\": 0.5"),
              HasSubstr("partial_rotary_factor: found 0.5, but gpt_neox goes"));
  EXPECT_THAT(errors("\"rotary_pct\": 0.2"),
              HasSubstr("rotary_pct: turns 3 elements of a head's 16, "
                        "expected a part"));
  EXPECT_THAT(errors("\"rotary_pct\": 1.5"), HasSubstr("rotary_pct: turns"));
  // As Transformers 5 keeps it.
  EXPECT_THAT(modelOf(keys, R"("rope_parameters": {"rope_type": "default",
                  "rope_theta": 10000.0, "partial_rotary_factor": 0.5})"),
              HasSubstr("inverse_frequencies [1.0, 0.1, 0.01, 0.001"));
}

TEST(ImportLlama, KeyHeadsDefaultToTheFamilys) {
  auto keyHeads = [](const std::string &family, const std::string &value) {
    std::string keys = with(llamaKeys(family), "num_attention_heads", "64");
    size_t at = keys.find("\"num_key_value_heads\"");
    keys.replace(at, keys.find("\"head_dim\"") - at, value);
    std::string model = modelOf(keys);
    size_t end = model.find("x8x32xf32"), begin = model.find("k_proj.weight");
    end = model.find("x8x32xf32", begin);
    begin = model.rfind('<', end) + 1;
    return model.substr(begin, end - begin);
  };
  EXPECT_EQ(keyHeads("llama", ""), "64");
  EXPECT_EQ(keyHeads("mistral", ""), "8");
  EXPECT_EQ(keyHeads("qwen2", ""), "32");
  EXPECT_EQ(keyHeads("qwen3", ""), "32");
  for (const char *family : {"llama", "mistral", "qwen2", "qwen3"})
    EXPECT_EQ(keyHeads(family, "\"num_key_value_heads\": null, "), "64");
}

TEST(ImportLlama, PaddingHasNoGradient) {
  for (const char *family : {"llama", "mistral", "qwen2", "qwen3"}) {
    std::string keys = llamaKeys(family);
    EXPECT_THAT(modelOf(keys, "\"pad_token_id\": 0"),
                HasSubstr("embedding %embed_tokens, %tokens padding 0 :"));
    EXPECT_EQ(mathOf(modelOf(keys, "\"pad_token_id\": null")),
              mathOf(modelOf(keys)));
    EXPECT_THAT(modelOf(keys), Not(HasSubstr("padding")));
  }
  Result result = importKeys(llamaKeys("llama"), "\"pad_token_id\": -1");
  EXPECT_THAT(*result.model, HasSubstr("%tokens padding 99 :"));
  EXPECT_THAT(textOf(result.diagnostics),
              HasSubstr("warning: pad_token_id: found -1, taken as token 99"));
}

TEST(ImportLlama, WindowsFollowTheFamily) {
  auto windows = [](const std::string &family, const std::string &more) {
    return countOf(modelOf(llamaKeys(family), more), " window 16 ");
  };
  EXPECT_EQ(windows("mistral", "\"sliding_window\": 16"), 2u);
  EXPECT_EQ(windows("mistral", "\"sliding_window\": null"), 0u);
  EXPECT_EQ(windows("qwen2", "\"sliding_window\": 16"), 0u);
  std::string use = "\"use_sliding_window\": true, \"sliding_window\": 16";
  EXPECT_EQ(windows("qwen2", use), 0u); // max_window_layers is 28
  EXPECT_EQ(windows("qwen2", use + ", \"max_window_layers\": 1"), 1u);
  EXPECT_EQ(windows("qwen3", use + ", \"max_window_layers\": 0"), 2u);
  EXPECT_EQ(windows("qwen3", use + ", \"layer_types\": [\"sliding_attention\", "
                                   "\"full_attention\"]"),
            1u);
}

TEST(ImportLlama, ATokenOfTheDataThatIsThePaddingIsWarnedOf) {
  auto warnings = [](const std::string &more) {
    Result result = importKeys(llamaKeys("llama"), more);
    EXPECT_TRUE(result.model);
    return textOf(result.diagnostics);
  };
  for (const char *eos : {"2", "[1, 2]"})
    EXPECT_THAT(
        warnings(std::string("\"pad_token_id\": 2, \"eos_token_id\": ") + eos),
        HasSubstr("warning: pad_token_id: is 2, and so is "
                  "eos_token_id: the embedding of this token gets no "
                  "gradient and does not learn"));
  EXPECT_THAT(warnings("\"pad_token_id\": 1, \"bos_token_id\": 1"),
              HasSubstr("and so is bos_token_id"));
  EXPECT_EQ(warnings("\"pad_token_id\": 0, \"eos_token_id\": 2"), "");
  EXPECT_EQ(warnings("\"pad_token_id\": 2, \"eos_token_id\": 2, "
                     "\"tie_word_embeddings\": true"),
            "");
}

TEST(Import, ClassesWithoutAHeadAreTaken) {
  for (const auto &[keys, name] : {std::pair{gpt2Keys, "GPT2Model"},
                                   {llamaKeys("llama"), "LlamaModel"},
                                   {llamaKeys("mistral"), "MistralModel"},
                                   {llamaKeys("qwen2"), "Qwen2Model"},
                                   {llamaKeys("qwen3"), "Qwen3Model"}}) {
    std::string named = "\"architectures\": [\"" + std::string(name) + "\"]";
    EXPECT_EQ(mathOf(modelOf(keys, named)), mathOf(modelOf(keys)));
  }
}

TEST(ImportGpt2, DropoutIsToldOnce) {
  auto told = [](const std::string &keys) {
    return textOf(importConfig("{" + keys + "}", "c.json").diagnostics);
  };
  std::string bare =
      R"("model_type": "gpt2", "vocab_size": 100, "n_positions": 32,
         "n_embd": 24, "n_layer": 2, "n_head": 3)";
  EXPECT_EQ(told(bare),
            "c.json: note: dropout: training drops activations at random "
            "(resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0.1); set these keys "
            "to 0 to train without\n");
  EXPECT_EQ(told(gpt2Keys), "");
}

/// The keys of Gemma 3's files of 4B and more, which say little of the text.
TEST(Import, TheLanguageModelOfAWrapperIsReadAlone) {
  Result result = importConfig(
      R"({"model_type": "gemma3", "architectures":
          ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256,
          "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
          "model_type": "gemma3_text", "num_hidden_layers": 34,
          "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
          "sliding_window": 1024}, "vision_config": {"hidden_size": 1152}})",
      "config.json");
  ASSERT_TRUE(result.model) << textOf(result.diagnostics);
  EXPECT_EQ(textOf(result.diagnostics),
            "config.json: note: text_config: the language model alone is read, "
            "without vision_config\n");
  // 262208*2560 + 34 * (2*2048*2560 + 2*1024*2560 + 3*10240*2560 + 4*2560 +
  // 2*256) + 2560.
  std::string first = result.model->substr(0, result.model->find('\n'));
  EXPECT_THAT(first, HasSubstr("34 layers, 3880263168 parameters."));
  EXPECT_NE(
      result.model->find(R"(transformer.config = "{\"hidden_size\":2560,)"),
      std::string::npos);
  std::string llama = "{" + llamaKeys("llama") + "}";
  result = importConfig("{\"text_config\": " + llama + "}", "config.json");
  EXPECT_EQ(mathOf(*result.model), mathOf(modelOf(llamaKeys("llama"))));
}

TEST(Import, OfficialFilesAreReadWithoutARemark) {
  Result result =
      importKeys(gpt2Keys,
                 R"("activation_function": "gelu_new", "architectures":
         ["GPT2LMHeadModel"], "bos_token_id": 50256, "eos_token_id": 50256,
         "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 1024,
         "n_special": 0, "predict_special_tokens": true,
         "summary_activation": null, "summary_first_dropout": 0.1,
         "summary_proj_to_labels": true, "summary_type": "cls_index",
         "summary_use_proj": true, "task_specific_params": {"text-generation":
         {"do_sample": true, "max_length": 50}}, "_num_labels": 1)");
  EXPECT_EQ(textOf(result.diagnostics), "");
  result = importKeys(
      llamaKeys("llama"),
      R"("architectures": ["LlamaForCausalLM"], "attention_bias": false,
         "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
         "hidden_act": "silu", "initializer_range": 0.041, "is_llama_config":
         true, "mlp_bias": false, "pad_token_id": null, "pretraining_tp": 1,
         "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling":
         null, "rope_theta": 100000, "tie_word_embeddings": true,
         "torch_dtype": "bfloat16", "transformers.js_config":
         {"kv_cache_dtype": {"q4f16": "float16"}}, "transformers_version":
         "4.40.1", "use_cache": true, "max_sequence_length": 2048,
         "unsloth_fixed": true)");
  EXPECT_EQ(textOf(result.diagnostics), "");
  result = importKeys(llamaKeys("qwen2"),
                      R"("max_window_layers": 21, "sliding_window": 131072,
         "use_mrope": false, "use_sliding_window": false)");
  EXPECT_EQ(textOf(result.diagnostics), "");
}

TEST(Import, HarmlessKeysPassUnknownOnesAreRefused) {
  Result result = importKeys(
      llamaKeys("llama"), "\"use_cache\": true, \"torch_dtype\": \"bfloat16\", "
                          "\"eos_token_id\": [1, 2], \"quantization_config\": "
                          "null, \"partial_rotary_factor\": 1.0, "
                          "\"_anything\": {\"a\": 1}");
  EXPECT_TRUE(result.model);
  EXPECT_EQ(textOf(result.diagnostics), "");
  result =
      importKeys(llamaKeys("llama"), "\"rms_norm_epsilon\": 1e-5, \"zzz\": 1");
  EXPECT_FALSE(result.model);
  EXPECT_EQ(textOf(result.diagnostics),
            "config.json: error: rms_norm_epsilon: unknown key, which may "
            "change the mathematics; take it out if it does not; did you mean "
            "\"rms_norm_eps\"?\n"
            "config.json: error: zzz: unknown key, which may change the "
            "mathematics; take it out if it does not\n");
}

TEST(Import, TheFileNameCannotEndTheComment) {
  Result result = importConfig("{" + gpt2Keys + "}", "a\nb");
  EXPECT_THAT(*result.model, HasSubstr("imported from \"a\\nb\":"));
}

} // namespace
} // namespace meshwork::importer
