// Qwen3 with experts.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr MixtureFamily experts = {.count = "num_experts",
                                          .otherCount = "num_local_experts",
                                          .experts = 128,
                                          .choices = 8,
                                          .width = 768,
                                          .someLayers = true};

const Family qwen3Moe = {
    .type = "qwen3_moe",
    .causal = "Qwen3MoeForCausalLM",
    .bare = "Qwen3MoeModel",
    .qkNorm = QkNorm::head,
    .qkvBias = {"attention_bias"},
    .keyHeads = 4,
    .windows = {.sliding = Sliding::asked, .size = 4096, .mixes = true},
    .mixture = &experts};

} // namespace meshwork::importer
