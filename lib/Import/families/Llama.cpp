// Llama (Touvron et al., arXiv 2302.13971): RMSNorm, rotary positions, grouped
// heads, a gated feed-forward block.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

const Family llama = {.type = "llama",
                      .causal = "LlamaForCausalLM",
                      .bare = "LlamaModel",
                      .qkvBias = {"attention_bias"},
                      .mlpBias = {"mlp_bias"}};

} // namespace meshwork::importer
