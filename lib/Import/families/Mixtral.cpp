// Mixtral (Jiang et al., arXiv 2401.04088): Mistral with experts.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr MixtureFamily experts = {.count = "num_local_experts",
                                          .otherCount = "num_experts",
                                          .experts = 8,
                                          .choices = 2,
                                          .alwaysNormalizes = true,
                                          .block = "block_sparse_moe.",
                                          .gate = "w1",
                                          .up = "w3",
                                          .down = "w2"};

const Family mixtral = {.type = "mixtral",
                        .causal = "MixtralForCausalLM",
                        .bare = "MixtralModel",
                        .epsilon = 1e-5,
                        .keyHeads = 8,
                        .windows = {.sliding = Sliding::always},
                        .theta = 1e6,
                        .mixture = &experts};

} // namespace meshwork::importer
