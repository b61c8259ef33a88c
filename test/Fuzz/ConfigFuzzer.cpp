// A config.json of Hugging Face.
#include "lib/Import/Import.h"
#include "test/Fuzz/Fuzz.h"

namespace meshwork::fuzz {

bool accept(std::string_view input) {
  importer::Result result = importer::importConfig(input, "config.json");
  textOf(result.diagnostics);
  return result.model.has_value();
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = {
      R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32,
"n_embd": 16, "n_layer": 1, "n_head": 2, "activation_function": "gelu_new",
"resid_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "tie_word_embeddings": true})",
      R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 16,
"intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
"num_key_value_heads": 1, "rms_norm_eps": 1e-06, "hidden_act": "silu",
"rope_theta": 500000.0, "max_position_embeddings": 64, "rope_scaling":
{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
"high_freq_factor": 4.0, "original_max_position_embeddings": 32}})"};
  return all;
}

} // namespace meshwork::fuzz
