// Mistral 7B (Jiang et al., arXiv 2310.06825): Llama with a sliding window.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

const Family mistral = {.type = "mistral",
                        .causal = "MistralForCausalLM",
                        .bare = "MistralModel",
                        .keyHeads = 8,
                        .windows = {.sliding = Sliding::always, .size = 4096}};

} // namespace meshwork::importer
