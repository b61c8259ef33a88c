// Gemma 3's text model (Gemma Team, arXiv 2503.19786): norms before and behind
// attention and feed-forward, and of q and k. Five layers of six look back no
// further than a window, with rotary positions of another base.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {
    .afterAttention = "post_attention_layernorm",
    .beforeFeedForward = "pre_feedforward_layernorm",
    .afterFeedForward = "post_feedforward_layernorm"};

static constexpr NumberKey numbers[] = {
    {"query_pre_attn_scalar", &Decoder::queryScalar, 256}};

/// rope_scaling is of the layers without a window.
static void readLocalRope(const Source &, Config &config, Decoder &m) {
  if (config.find("sliding_window") && config.isNull("sliding_window"))
    config.error("sliding_window", "found null, expected a number of tokens");
  auto rotated = static_cast<int64_t>(2 * m.ropes[0].inverseFrequencies.size());
  double theta = config.positive("rope_local_base_freq", 1e4);
  if (theta <= 1)
    config.error("rope_local_base_freq", "expected a number above 1");
  m.ropes.push_back(plainRope(theta, rotated));
  for (size_t i = 0; i < m.ropeOf.size(); ++i)
    m.ropeOf[i] = m.windows[i] > 0 ? 1 : 0;
}

const Family gemma3 = {.type = "gemma3_text",
                       .causal = "Gemma3ForCausalLM",
                       .bare = "Gemma3TextModel",
                       .names = &names,
                       .norm = Norm::rmsPlusOne,
                       .qkNorm = QkNorm::head,
                       .activationKey = "hidden_activation",
                       .activation = "gelu_pytorch_tanh",
                       .qkvBias = {"attention_bias"},
                       .vocabulary = 262208,
                       .heads = 8,
                       .keyHeads = 4,
                       .headDim = 256,
                       .tied = true,
                       .padding = 0,
                       .windows = {.sliding = Sliding::always,
                                   .size = 4096,
                                   .mixes = true,
                                   .fullEvery = 6},
                       .theta = 1e6,
                       .scalesEmbedding = true,
                       .numbers = numbers,
                       .more = readLocalRope};

} // namespace meshwork::importer
