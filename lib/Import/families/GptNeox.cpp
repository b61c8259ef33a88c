// GPT-NeoX (Black et al., arXiv 2204.06745), of which Pythia is (arXiv
// 2304.01373): LayerNorm, rotary positions of a part of each head, attention
// and feed-forward side by side, each head's q, k and v in one matrix.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.embedding = "gpt_neox.embed_in",
                                .layers = "gpt_neox.layers.",
                                .norm = "gpt_neox.final_layer_norm",
                                .head = "embed_out",
                                .attention = "attention.",
                                .o = "dense",
                                .qkv = "query_key_value",
                                .up = "dense_h_to_4h",
                                .down = "dense_4h_to_h",
                                .embeddingDropout = "gpt_neox.emb_dropout",
                                .attentionDropout = "post_attention_dropout",
                                .feedForwardDropout = "post_mlp_dropout"};

static constexpr NumberKey numbers[] = {
    {"hidden_dropout", &Decoder::residualRate, 0, NumberKey::Range::rate},
    {"hidden_dropout", &Decoder::embeddingRate, 0, NumberKey::Range::rate}};

/// The class sets its other names of these keys from its own.
static void compareNames(const Source &, Config &config, Decoder &) {
  struct Pair {
    const char *own, *other;
    double fallback;
  };
  for (auto [own, other, fallback] :
       {Pair{"rotary_emb_base", "rope_theta", 1e4},
        Pair{"rotary_pct", "partial_rotary_factor", 0.25}})
    if (double value = config.positive(own, fallback);
        config.positive(other, value) != value)
      config.error(other, "found " + config.find(other)->found() +
                              ", but gpt_neox goes by " + own +
                              ", which is another number; keep one");
}

const Family gptNeox = {.type = "gpt_neox",
                        .causal = "GPTNeoXForCausalLM",
                        .bare = "GPTNeoXModel",
                        .names = &names,
                        .norm = Norm::layer,
                        .epsilonKey = "layer_norm_eps",
                        .epsilon = 1e-5,
                        .qkv = Qkv::perHead,
                        .feedForward = FeedForward::plain,
                        .activation = "gelu",
                        .qkvBias = {"attention_bias", true},
                        .mlpBias = {nullptr, true},
                        .parallel = {"use_parallel_residual", true},
                        .groupsHeads = false,
                        .hasHeadDim = false,
                        .pads = false,
                        .thetaKey = "rotary_emb_base",
                        .rotatedKey = "rotary_pct",
                        .rotated = 0.25,
                        .numbers = numbers,
                        .more = compareNames};

} // namespace meshwork::importer
