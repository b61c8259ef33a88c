// Gemma 2 (Gemma Team, arXiv 2408.00118): norms before and behind attention and
// feed-forward, caps of attention's scores and of logits, and every other layer
// looks back no further than a window.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {
    .afterAttention = "post_attention_layernorm",
    .beforeFeedForward = "pre_feedforward_layernorm",
    .afterFeedForward = "post_feedforward_layernorm"};

static constexpr NumberKey numbers[] = {
    {"query_pre_attn_scalar", &Decoder::queryScalar, 256}};

/// null stands for none, absence for the class's own.
static double readCap(Config &config, const char *key, double fallback) {
  if (config.find(key) && config.isNull(key))
    return 0;
  double cap = config.positive(key, fallback);
  if (cap <= 1e30 && cap >= 1e-30) // of an f32 much is left
    return cap;
  config.error(key, "found " + config.find(key)->found() +
                        ", expected null or a number from 1e-30 to 1e30");
  return fallback;
}

static void readCaps(const Source &, Config &config, Decoder &m) {
  m.scoreCap = readCap(config, "attn_logit_softcapping", 50);
  m.logitCap = readCap(config, "final_logit_softcapping", 30);
  if (config.find("sliding_window") && config.isNull("sliding_window"))
    config.error("sliding_window", "found null, expected a number of tokens");
}

const Family gemma2 = {.type = "gemma2",
                       .causal = "Gemma2ForCausalLM",
                       .bare = "Gemma2Model",
                       // What files of older versions repeat.
                       .harmless = "hidden_act sliding_window_size ",
                       .names = &names,
                       .norm = Norm::rmsPlusOne,
                       .activationKey = "hidden_activation",
                       .activation = "gelu_pytorch_tanh",
                       .qkvBias = {"attention_bias"},
                       .keyHeads = 4,
                       .headDim = 256,
                       .tied = true,
                       .padding = 0,
                       .windows = {.sliding = Sliding::always,
                                   .size = 4096,
                                   .mixes = true,
                                   .fullEvery = 2,
                                   .everyKey = nullptr},
                       .scalesEmbedding = true,
                       .numbers = numbers,
                       .more = readCaps};

} // namespace meshwork::importer
