// Qwen1.5-MoE and Qwen2-MoE: Qwen2 with experts, of which one has every token.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr MixtureFamily experts = {.count = "num_experts",
                                          .otherCount = "num_local_experts",
                                          .experts = 60,
                                          .choices = 4,
                                          .width = 1408,
                                          .someLayers = true,
                                          .shared = 5632};

static void refuseWindows(const Source &, Config &config, Decoder &) {
  if (config.boolean("use_sliding_window", false))
    config.error("use_sliding_window",
                 "found true, but ways to compute attention in this family's "
                 "class disagree on which layers slide; expected false");
}

const Family qwen2Moe = {
    .type = "qwen2_moe",
    .causal = "Qwen2MoeForCausalLM",
    .bare = "Qwen2MoeModel",
    .qkvBias = {"qkv_bias", true},
    .outputBias = false,
    .keyHeads = 16,
    .hasHeadDim = false,
    .windows = {.sliding = Sliding::asked, .size = 4096, .mixes = true},
    .mixture = &experts,
    .more = refuseWindows};

} // namespace meshwork::importer
