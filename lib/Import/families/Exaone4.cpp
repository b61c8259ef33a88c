// EXAONE 4 (LG AI Research, arXiv 2507.11407): norms behind attention and
// feed-forward instead of before them, and of q and k. Where layers have
// windows, those without have no rotary positions.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.beforeAttention = nullptr,
                                .afterAttention = "post_attention_layernorm",
                                .beforeFeedForward = nullptr,
                                .afterFeedForward =
                                    "post_feedforward_layernorm"};

static void readNoRope(const Source &, Config &config, Decoder &m) {
  const char *key = "sliding_window";
  if (config.find(key) && config.isNull(key))
    return; // no layer has a window
  for (size_t i = 0; i < m.ropeOf.size(); ++i)
    m.ropeOf[i] = m.windows[i] > 0 ? 0 : -1;
}

const Family exaone4 = {.type = "exaone4",
                        .causal = "Exaone4ForCausalLM",
                        .bare = "Exaone4Model",
                        .names = &names,
                        .epsilon = 1e-5,
                        .qkNorm = QkNorm::head,
                        .keyHeads = 32,
                        .windows = {.sliding = Sliding::always,
                                    .size = 4096,
                                    .mixes = true,
                                    .fullEvery = 4},
                        .more = readNoRope};

} // namespace meshwork::importer
