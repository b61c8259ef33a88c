// Ministral 8B: Mistral with windows in some layers.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

const Family ministral = {
    .type = "ministral",
    .causal = "MinistralForCausalLM",
    .bare = "MinistralModel",
    .keyHeads = 8,
    .windows = {.sliding = Sliding::always, .size = 4096, .mixes = true}};

} // namespace meshwork::importer
