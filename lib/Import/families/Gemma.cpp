// Gemma 1 (Gemma Team, arXiv 2403.08295): Llama with embeddings times
// sqrt(hidden_size), norms times 1 + weight, GELU in its form with tanh.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

/// The class goes by hidden_act alone, and older ones went by this.
static void compareActivations(const Source &, Config &config, Decoder &m) {
  const char *key = "hidden_activation";
  if (config.isNull(key) ||
      readActivation(config, key, "gelu_pytorch_tanh") == m.activation)
    return;
  config.error(key, "found " + config.find(key)->found() +
                        ", but hidden_act is another function, and versions of "
                        "Transformers go by one or the other; keep one");
}

const Family gemma = {.type = "gemma",
                      .causal = "GemmaForCausalLM",
                      .bare = "GemmaModel",
                      .norm = Norm::rmsPlusOne,
                      .activation = "gelu_pytorch_tanh",
                      .qkvBias = {"attention_bias"},
                      .keyHeads = 16,
                      .headDim = 256,
                      .tied = true,
                      .padding = 0,
                      .scalesEmbedding = true,
                      .more = compareActivations};

} // namespace meshwork::importer
