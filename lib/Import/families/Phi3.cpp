// Phi-3 (Abdin et al., arXiv 2404.14219) and Phi-4 (arXiv 2412.08905): Llama
// with q, k and v as rows of one matrix, gate and up of another, and dropout in
// the residual stream.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

static constexpr Names names = {.attentionDropout = "resid_attn_dropout",
                                .feedForwardDropout = "resid_mlp_dropout"};

static constexpr NumberKey numbers[] = {
    {"resid_pdrop", &Decoder::residualRate, 0, NumberKey::Range::rate}};

/// The class takes "longrope" alone, which readRope refuses by its name, and
/// takes "su" and "yarn" for it.
static void refuseOtherRopes(const Source &, Config &config, Decoder &) {
  if (config.isNull("rope_scaling"))
    return;
  const Json &scaling = *config.find("rope_scaling");
  for (size_t i = 0; i < scaling.keys.size(); ++i)
    if ((scaling.keys[i] == "type" || scaling.keys[i] == "rope_type") &&
        scaling.items[i].text == "longrope")
      return;
  config.error("rope_scaling",
               "found " + scaling.found() +
                   ", but phi3 knows \"longrope\" alone, which this version "
                   "does not; expected null");
}

const Family phi3 = {.type = "phi3",
                     .causal = "Phi3ForCausalLM",
                     .bare = "Phi3Model",
                     .harmless = "embd_pdrop ",
                     .names = &names,
                     .epsilon = 1e-5,
                     .qkv = Qkv::stacked,
                     .feedForward = FeedForward::fused,
                     .padding = 32000,
                     .windows = {.sliding = Sliding::always},
                     .rotatedKey = "partial_rotary_factor",
                     .numbers = numbers,
                     .more = refuseOtherRopes};

} // namespace meshwork::importer
