// Seed-OSS (ByteDance): Llama with biases of q, k and v, and dropout in the
// residual stream.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.attentionDropout =
                                    "self_attn.residual_dropout",
                                .feedForwardDropout = "mlp.residual_dropout"};

static constexpr NumberKey numbers[] = {
    {"residual_dropout", &Decoder::residualRate, 0.1, NumberKey::Range::rate}};

const Family seedOss = {.type = "seed_oss",
                        .causal = "SeedOssForCausalLM",
                        .bare = "SeedOssModel",
                        .names = &names,
                        .qkvBias = {"attention_bias", true},
                        .mlpBias = {"mlp_bias"},
                        .outputBiasKey = "attention_out_bias",
                        .outputBias = false,
                        .keyHeads = 8,
                        .headDim = 128,
                        .padding = 1,
                        .attentionRate = 0.1,
                        .numbers = numbers};

} // namespace meshwork::importer
