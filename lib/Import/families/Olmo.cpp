// OLMo 1 (Groeneveld et al., arXiv 2402.00838): Llama with LayerNorm without
// weights, and q, k and v clipped where clip_qkv says so.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr NumberKey numbers[] = {{"clip_qkv", &Decoder::clip, 0}};

const Family olmo = {.type = "olmo",
                     .causal = "OlmoForCausalLM",
                     .bare = "OlmoModel",
                     .norm = Norm::plain,
                     .epsilonKey = nullptr,
                     .epsilon = 1e-5,
                     .qkvBias = {"attention_bias"},
                     .padding = 1,
                     .numbers = numbers};

} // namespace meshwork::importer
