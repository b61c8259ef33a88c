// Qwen3 (Yang et al., arXiv 2505.09388): Llama with norms of q and k.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

const Family qwen3 = {.type = "qwen3",
                      .causal = "Qwen3ForCausalLM",
                      .bare = "Qwen3Model",
                      .qkNorm = QkNorm::head,
                      .qkvBias = {"attention_bias"},
                      .keyHeads = 32,
                      .headDim = 128,
                      .windows = {.sliding = Sliding::asked,
                                  .size = 4096,
                                  .fullLayers = 28,
                                  .mixes = true}};

} // namespace meshwork::importer
