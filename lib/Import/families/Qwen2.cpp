// Qwen2 (Yang et al., arXiv 2407.10671): Llama with biases of q, k and v.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

const Family qwen2 = {.type = "qwen2",
                      .causal = "Qwen2ForCausalLM",
                      .bare = "Qwen2Model",
                      .qkvBias = {nullptr, true},
                      .outputBias = false,
                      .keyHeads = 32,
                      .windows = {.sliding = Sliding::asked,
                                  .size = 4096,
                                  .fullLayers = 28,
                                  .mixes = true}};

} // namespace meshwork::importer
