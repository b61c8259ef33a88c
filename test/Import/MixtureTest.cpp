// Mixtures of experts: published sizes, which layers have experts, files.
#include "test/Import/TestConfigs.h"

namespace meshwork::importer {
namespace {

using testing::HasSubstr;
using testing::Not;

/// config.json of the repository, as far as sizes go.
const std::string mixtral8x7b =
    R"("model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096,
       "intermediate_size": 14336, "num_hidden_layers": 32,
       "num_attention_heads": 32, "num_key_value_heads": 8,
       "num_local_experts": 8, "num_experts_per_tok": 2,
       "router_aux_loss_coef": 0.02, "output_router_logits": false,
       "sliding_window": null, "rope_theta": 1000000.0)";
const std::string qwen3With30b =
    R"("model_type": "qwen3_moe", "vocab_size": 151936, "hidden_size": 2048,
       "intermediate_size": 6144, "num_hidden_layers": 48,
       "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
       "num_experts": 128, "num_experts_per_tok": 8,
       "moe_intermediate_size": 768, "norm_topk_prob": true,
       "decoder_sparse_step": 1, "mlp_only_layers": [],
       "max_window_layers": 48, "use_sliding_window": false,
       "rope_theta": 1000000.0)";
const std::string qwen15WithA27b =
    R"("model_type": "qwen2_moe", "vocab_size": 151936, "hidden_size": 2048,
       "intermediate_size": 5632, "num_hidden_layers": 24,
       "num_attention_heads": 16, "num_key_value_heads": 16,
       "num_experts": 60, "num_experts_per_tok": 4,
       "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
       "use_sliding_window": false, "sliding_window": 32768)";
const std::string olmoeWith7b =
    R"("model_type": "olmoe", "vocab_size": 50304, "hidden_size": 2048,
       "intermediate_size": 1024, "num_hidden_layers": 16,
       "num_attention_heads": 16, "num_key_value_heads": 16,
       "num_experts": 64, "num_experts_per_tok": 8, "clip_qkv": null,
       "pad_token_id": 1, "attention_bias": false)";

const std::string dotsLlm1 =
    R"("model_type": "dots1", "vocab_size": 152064, "hidden_size": 4096,
       "intermediate_size": 10944, "num_hidden_layers": 62,
       "num_attention_heads": 32, "num_key_value_heads": 32,
       "n_routed_experts": 128, "num_experts_per_tok": 6,
       "n_shared_experts": 2, "moe_intermediate_size": 1408,
       "first_k_dense_replace": 1, "norm_topk_prob": true,
       "routed_scaling_factor": 2.5, "sliding_window": null,
       "rope_theta": 10000000)";

std::string moe(const std::string &more) {
  return modelOf(llamaKeys("qwen3_moe"), more);
}

TEST(ImportMixture, HasThePublishedNumberOfParameters) {
  EXPECT_THAT(modelOf(mixtral8x7b),
              HasSubstr("46702792704 parameters, of which each token uses "
                        "12879925248."));
  EXPECT_THAT(modelOf(qwen3With30b), HasSubstr("30532122624 parameters"));
  // As Transformers' class has.
  EXPECT_THAT(modelOf(qwen15WithA27b), HasSubstr("14315784192 parameters"));
  EXPECT_THAT(modelOf(olmoeWith7b), HasSubstr("6919161856 parameters"));
  EXPECT_THAT(modelOf(dotsLlm1), HasSubstr("142774373888 parameters"));
}

TEST(ImportMixture, ReadsATensorForEachExpertOrOneForAll) {
  std::string model =
      modelOf(llamaKeys("mixtral"), R"("num_experts_per_tok": 1)");
  EXPECT_THAT(
      model,
      HasSubstr(
          R"(parameter "model.layers.1.block_sparse_moe.experts.w3.weight" layer 1 init <normal, 0.0, 0.02> files )"
          R"([#transformer.file<"model.layers.1.block_sparse_moe.experts.{}.w3.weight" along 0>] or )"
          R"([[#transformer.file<"model.layers.1.block_sparse_moe.experts.gate_up_proj" shape [8, 96, 32] offset [0, 48, 0]>]] : )"
          R"(tensor<8x48x32xf32)"));
  EXPECT_THAT(
      model,
      HasSubstr(
          R"([[#transformer.file<"model.layers.1.block_sparse_moe.experts.down_proj">]] : tensor<8x32x48xf32)"));
}

TEST(ImportMixture, HasExpertsInTheLayersThatAreSaid) {
  auto has = [](const std::string &model, int layer) {
    std::string mlp = "model.layers." + std::to_string(layer) + ".mlp.";
    bool dense =
        model.find("\"" + mlp + "up_proj.weight\"") != std::string::npos;
    EXPECT_NE(dense,
              model.find("\"" + mlp + "gate.weight\"") != std::string::npos);
    return !dense;
  };
  std::string four = with(llamaKeys("qwen3_moe"), "num_hidden_layers", "4");
  std::string all = modelOf(four),
              some = modelOf(four, R"("decoder_sparse_step": 2)"),
              two = modelOf(four, R"("mlp_only_layers": [0, 2])");
  for (int layer = 0; layer < 4; ++layer) {
    EXPECT_TRUE(has(all, layer));
    EXPECT_EQ(has(some, layer), layer % 2 == 1);
    EXPECT_EQ(has(two, layer), layer % 2 == 1);
  }
}

TEST(ImportMixture, HasASharedExpert) {
  std::string model = modelOf(llamaKeys("qwen2_moe"),
                              R"("shared_expert_intermediate_size": 20)");
  for (
      const char *part :
      {R"(parameter "model.layers.1.mlp.shared_expert.up_proj.weight")",
       R"(parameter "model.layers.1.mlp.shared_expert_gate.weight" layer 1 init <normal, 0.0, 0.02> file_shape [1, 32])",
       "activate sigmoid %l1_shared_router",
       "%l1_with_shared = transformer.add %l1_experts, %l1_shared_weighed"})
    EXPECT_THAT(model, HasSubstr(part));
  EXPECT_THAT(model, HasSubstr("q_proj.bias"));
  EXPECT_THAT(modelOf(llamaKeys("qwen2_moe"), R"("qkv_bias": false)"),
              Not(HasSubstr("q_proj.bias")));
}

/// Of queries and of keys, all heads at once.
TEST(ImportMixture, HasNormsOverAllHeads) {
  std::string model = modelOf(llamaKeys("olmoe"));
  EXPECT_THAT(
      model,
      HasSubstr(
          R"(parameter "model.layers.0.self_attn.q_norm.weight" layer 0 init <constant, 1.0> file_shape [32] : tensor<4x8xf32)"));
  EXPECT_THAT(
      model,
      HasSubstr(
          R"(parameter "model.layers.0.self_attn.k_norm.weight" layer 0 init <constant, 1.0> file_shape [16] : tensor<2x8xf32)"));
  EXPECT_THAT(model, HasSubstr("padding 1"));
}

/// Only where the class would add the loss.
TEST(ImportMixture, HasACoefficientForEvenRouting) {
  for (const char *family : {"mixtral", "qwen3_moe"}) {
    auto has = [&](const std::string &more) {
      return modelOf(llamaKeys(family), more);
    };
    EXPECT_THAT(has(R"("output_router_logits": true)"),
                HasSubstr("transformer.balance_coefficient = 0.001 : f64"));
    EXPECT_THAT(has(R"("output_router_logits": true,
                       "router_aux_loss_coef": 0.02)"),
                HasSubstr("transformer.balance_coefficient = 0.02 : f64"));
    for (const char *none :
         {R"("router_aux_loss_coef": 0.02)",
          R"("output_router_logits": true, "router_aux_loss_coef": 0)"})
      EXPECT_THAT(has(none), Not(HasSubstr("balance_coefficient")));
  }
}

/// Of all scores, or of the chosen ones alone.
TEST(ImportMixture, WeighsChoices) {
  EXPECT_THAT(moe(R"("norm_topk_prob": false)"),
              HasSubstr("%l0_chosen = transformer.pick %l0_scores at"));
  std::string normalized = moe(R"("norm_topk_prob": true)");
  EXPECT_THAT(normalized,
              HasSubstr("%l0_chosen = transformer.pick %l0_router at"));
  EXPECT_THAT(normalized,
              HasSubstr("%l0_weights = transformer.softmax %l0_chosen"));
  EXPECT_EQ(mathOf(moe("")), mathOf(moe(R"("norm_topk_prob": false)")));
}

TEST(ImportMixture, RefusesWhatItCannotDo) {
  auto expectError = [](const std::string &family, const std::string &more,
                        const std::string &message) {
    Result result = importKeys(llamaKeys(family), more);
    EXPECT_FALSE(result.model) << more;
    EXPECT_THAT(textOf(result.diagnostics), HasSubstr(message));
  };
  for (const char *family : {"mixtral", "qwen3_moe"}) {
    expectError(family, R"("router_aux_loss_coef": 1e31)",
                "router_aux_loss_coef: found a number above 1e30");
    expectError(family, R"("num_experts": 4, "num_local_experts": 8)",
                "num_local_experts");
    expectError(
        family, R"("num_experts": 4, "num_experts_per_tok": 5)",
        "num_experts_per_tok: found 5, expected at most num_experts, 4");
    expectError(family, R"("num_experts": 0)", "num_experts: found 0");
  }
  expectError("mixtral", R"("router_jitter_noise": 0.1)",
              "router_jitter_noise: found a number above 0");
  expectError("qwen3_moe", R"("mlp_only_layers": [2])",
              "mlp_only_layers: found an array, expected an array of layers, "
              "from 0 to 1");
  expectError("qwen3_moe", R"("moe_intermediate_size": 2147483647)",
              "moe_intermediate_size: makes a weight of more than");
  expectError("llama", R"("num_experts": 4)", "num_experts: found 4");
  expectError("olmoe", R"("clip_qkv": 8.0)", "clip_qkv: found 8,");
  expectError("qwen2_moe", R"("use_sliding_window": true)",
              "use_sliding_window: found true, but ways to compute attention");
  expectError("qwen3_moe", R"("shared_expert_intermediate_size": 4)",
              "shared_expert_intermediate_size");
  std::string dots = R"("n_routed_experts": 8, "num_experts_per_tok": 3,
      "n_shared_experts": 2, )";
  expectError("dots1", R"("num_experts_per_tok": 3, "n_shared_experts": 2)",
              "n_routed_experts: missing");
  expectError("dots1", dots + R"("n_group": 3)",
              "n_group: found 3, expected a divisor of n_routed_experts, 8, "
              "that leaves two in each group");
  expectError("dots1", dots + R"("n_group": 2, "topk_group": 3)",
              "topk_group: found 3, expected at most n_group, 2");
  expectError("dots1", dots + R"("n_group": 4, "topk_group": 1)",
              "num_experts_per_tok: found 3, expected at most what topk_group "
              "groups have, 2");
  expectError("dots1", dots + R"("moe_layer_freq": 2)",
              "moe_layer_freq: found 2, expected 1");
  expectError("dots1", dots + R"("first_k_dense_replace": -1)",
              "first_k_dense_replace: found -1, expected 0 or");
  Result head = importKeys(with(llamaKeys("olmoe"), "head_dim", "16"), "");
  EXPECT_THAT(textOf(head.diagnostics),
              HasSubstr("head_dim: found 16, but olmoe has hidden_size / "
                        "num_attention_heads; leave it out"));
}

} // namespace
} // namespace meshwork::importer
