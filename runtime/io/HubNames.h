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
/// family). Repositories hold either, and Transformers reads either. A model
/// with parts for pictures or sound has its language model's under a prefix.
std::vector<std::string> namesInFiles(std::string_view parameter);

/// Whether a tensor is no weight but follows from the configuration: GPT-2's
/// and GPT-NeoX's causal masks (h.N.attn.bias, layers.N.attention.masked_bias)
/// and the frequencies of rotary embeddings (rotary_emb.inv_freq).
bool followsFromConfig(std::string_view tensor);

/// Whether a tensor is of a part for pictures or sound beside the language
/// model: "vision_tower.", "model.multi_modal_projector." and the like.
bool isOfOtherPart(std::string_view tensor);

/// The head that tied embeddings make superfluous.
constexpr std::string_view headName = "lm_head.weight";
/// Whether the parameter is the embedding that a head is tied to.
bool isTokenEmbedding(std::string_view parameter);

} // namespace meshwork::runtime
