// OLMo 2 (arXiv 2501.00656): Llama with norms behind attention and feed-forward
// instead of before them, and over all heads of q, and of k.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.beforeAttention = nullptr,
                                .afterAttention = "post_attention_layernorm",
                                .beforeFeedForward = nullptr,
                                .afterFeedForward =
                                    "post_feedforward_layernorm"};

const Family olmo2 = {.type = "olmo2",
                      .causal = "Olmo2ForCausalLM",
                      .bare = "Olmo2Model",
                      .names = &names,
                      .epsilon = 1e-5,
                      .qkNorm = QkNorm::all,
                      .qkvBias = {"attention_bias"},
                      .padding = 1};

} // namespace meshwork::importer
