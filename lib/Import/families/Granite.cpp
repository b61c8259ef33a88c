// Granite 3 (IBM): Llama with factors of embeddings, of attention's scores, of
// what is added to the residual stream, and a divisor of logits.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr NumberKey factors[] = {
    {"embedding_multiplier", &Decoder::embeddingScale, 1},
    {"attention_multiplier", &Decoder::scoreScale, 1},
    {"residual_multiplier", &Decoder::residualScale, 1},
    {"logits_scaling", &Decoder::logitsDivisor, 1}};

const Family granite = {.type = "granite",
                        .causal = "GraniteForCausalLM",
                        .bare = "GraniteModel",
                        .qkvBias = {"attention_bias"},
                        .mlpBias = {"mlp_bias"},
                        .numbers = factors};

} // namespace meshwork::importer
