// dots.llm1 (arXiv 2506.05767): Qwen3's attention, DeepSeek-V3's experts.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr MixtureFamily experts = {.count = "n_routed_experts",
                                          .otherCount = "n_routed_experts",
                                          .width = 1408,
                                          .isBiased = true};

const Family dots1 = {.type = "dots1",
                      .causal = "Dots1ForCausalLM",
                      .bare = "Dots1Model",
                      .harmless = "topk_method scoring_func ",
                      .qkNorm = QkNorm::head,
                      .qkvBias = {"attention_bias"},
                      .keyHeads = 32,
                      .windows = {.sliding = Sliding::always,
                                  .size = 4096,
                                  .fullLayers = 62,
                                  .mixes = true},
                      .mixture = &experts};

} // namespace meshwork::importer
