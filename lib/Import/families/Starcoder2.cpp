// StarCoder2 (Lozhkov et al., arXiv 2402.19173): LayerNorm, rotary positions,
// grouped heads, a feed-forward block without a gate, biases everywhere.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.up = "c_fc",
                                .down = "c_proj",
                                .embeddingDropout = "model.embedding_dropout",
                                .attentionDropout =
                                    "self_attn.residual_dropout",
                                .feedForwardDropout = "mlp.residual_dropout"};

static constexpr NumberKey numbers[] = {
    {"residual_dropout", &Decoder::residualRate, 0, NumberKey::Range::rate},
    {"embedding_dropout", &Decoder::embeddingRate, 0, NumberKey::Range::rate}};

/// Published files say what the class always does.
static void compareKinds(const Source &, Config &config, Decoder &) {
  (void)config.choice("mlp_type", {"default"});
  (void)config.choice("norm_type", {"layer_norm"});
}

const Family starcoder2 = {.type = "starcoder2",
                           .causal = "Starcoder2ForCausalLM",
                           .bare = "Starcoder2Model",
                           .harmless = "layer_norm_epsilon scale_attn_weights ",
                           .names = &names,
                           .norm = Norm::layer,
                           .epsilonKey = "norm_epsilon",
                           .epsilon = 1e-5,
                           .feedForward = FeedForward::plain,
                           .activation = "gelu_pytorch_tanh",
                           .qkvBias = {"use_bias", true},
                           .mlpBias = {"use_bias", true},
                           .keyHeads = 2,
                           .tied = true,
                           .deviation = 0.018042,
                           .windows = {.sliding = Sliding::always},
                           .numbers = numbers,
                           .more = compareKinds};

} // namespace meshwork::importer
