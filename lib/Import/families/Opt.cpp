// OPT (Zhang et al., arXiv 2205.01068): GPT-3's architecture with ReLU. A table
// of learned positions, whose first two rows no token has.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.embedding = "model.decoder.embed_tokens",
                                .layers = "model.decoder.layers.",
                                .norm = "model.decoder.final_layer_norm",
                                .positions = "model.decoder.embed_positions",
                                .beforeAttention = "self_attn_layer_norm",
                                .beforeFeedForward = "final_layer_norm",
                                .o = "out_proj",
                                .feedForward = "",
                                .up = "fc1",
                                .down = "fc2",
                                .attentionDropout = "self_attn.dropout",
                                .feedForwardDropout = "fc2.dropout"};

static constexpr NumberKey numbers[] = {
    {"dropout", &Decoder::residualRate, 0.1, NumberKey::Range::rate}};

/// What the class also has: norms behind attention and feed-forward or none at
/// the end, and narrower embeddings. OPT-350M alone has the first and the last.
static void refuseVariants(const Source &, Config &config, Decoder &m) {
  auto require = [&](const char *key, bool expected, const char *part) {
    if (config.boolean(key, expected) != expected)
      config.error(key, std::string("found ") + (expected ? "false" : "true") +
                            ", " + part +
                            ", which is not supported; expected " +
                            (expected ? "true" : "false"));
  };
  require("do_layer_norm_before", true,
          "norms behind what is added to the residual stream");
  require("_remove_final_layer_norm", false, "no norm before the head");
  require("layer_norm_elementwise_affine", true, "norms without weights");
  const char *width = "word_embed_proj_dim";
  if (int64_t found = config.sizeOr(width, m.embed); found != m.embed)
    config.error(width, "found " + std::to_string(found) +
                            ", embeddings that a matrix makes wider, which "
                            "are not supported; expected hidden_size, " +
                            std::to_string(m.embed));
}

const Family opt = {.type = "opt",
                    .causal = "OPTForCausalLM",
                    .bare = "OPTModel",
                    .names = &names,
                    .norm = Norm::layer,
                    .epsilonKey = nullptr,
                    .epsilon = 1e-5,
                    .feedForward = FeedForward::plain,
                    .activationKey = "activation_function",
                    .activation = "relu",
                    .qkvBias = {"enable_bias", true},
                    .mlpBias = {"enable_bias", true},
                    .groupsHeads = false,
                    .hasHeadDim = false,
                    .tied = true,
                    .padding = 1,
                    .ffnKey = "ffn_dim",
                    .deviationKey = "init_std",
                    .firstPosition = 2,
                    .numbers = numbers,
                    .more = refuseVariants};

} // namespace meshwork::importer
