// OLMoE (Muennighoff et al., arXiv 2409.02060): experts, and norms over all
// heads of q, and of k.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr MixtureFamily experts = {.count = "num_experts",
                                          .otherCount = "num_local_experts",
                                          .experts = 64,
                                          .choices = 8,
                                          .coefficient = 0.01};

const Family olmoe = {.type = "olmoe",
                      .causal = "OlmoeForCausalLM",
                      .bare = "OlmoeModel",
                      .epsilon = 1e-5,
                      .qkNorm = QkNorm::all,
                      .qkvBias = {"attention_bias"},
                      .hasHeadDim = false,
                      .padding = 1,
                      .mixture = &experts};

} // namespace meshwork::importer
