// What repositories of the Hugging Face Hub name differently, and what they
// hold beside weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace meshwork::runtime {

/// The names under which a file may hold the parameter, the likeliest first.
/// These are its own name, and that with or without the prefix of the model
/// that a head was put on ("transformer." of GPT-2, "model." of the Llama
/// family). Repositories hold either, and Transformers reads either.
std::vector<std::string> namesInFiles(std::string_view parameter);

/// Whether a tensor is no weight but follows from the configuration: GPT-2's
/// causal masks (h.N.attn.bias, h.N.attn.masked_bias) and the frequencies of
/// rotary embeddings (rotary_emb.inv_freq).
bool followsFromConfig(std::string_view tensor);

/// The head that tied embeddings make superfluous.
constexpr std::string_view headName = "lm_head.weight";
/// Whether the parameter is the embedding that a head is tied to.
bool isTokenEmbedding(std::string_view parameter);

} // namespace meshwork::runtime
