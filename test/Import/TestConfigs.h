// Configurations that the tests change one key at a time.
#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Import/Import.h"

namespace meshwork::importer {

inline const std::string gpt2Keys =
    R"("model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 24,
       "n_layer": 2, "n_head": 3, "resid_pdrop": 0, "embd_pdrop": 0,
       "attn_pdrop": 0)";

/// `family` is one of the Llama family: llama, mixtral, qwen3_moe.
inline std::string llamaKeys(const std::string &family) {
  return "\"model_type\": \"" + family +
         R"(", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 48,
             "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 8,
             "max_position_embeddings": 256)";
}

/// `more` must not repeat a key of `keys`; see with().
inline Result importKeys(const std::string &keys,
                         const std::string &more = "") {
  return importConfig("{" + keys + (more.empty() ? "" : ", ") + more + "}",
                      "config.json");
}

inline std::string modelOf(const std::string &keys,
                           const std::string &more = "") {
  Result result = importKeys(keys, more);
  EXPECT_TRUE(result.model) << textOf(result.diagnostics);
  return result.model.value_or("");
}

/// What the model computes: its text without the configuration it came from.
inline std::string mathOf(std::string model) {
  size_t begin = model.find("transformer.config = ");
  EXPECT_NE(begin, std::string::npos);
  return model.erase(begin, model.find("} {\n", begin) - begin);
}

inline size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

/// `keys` with the value of `key` replaced.
inline std::string with(std::string keys, const std::string &key,
                        const std::string &value) {
  size_t at = keys.find("\"" + key + "\"");
  EXPECT_NE(at, std::string::npos) << key;
  size_t begin = keys.find(':', at) + 1;
  return keys.replace(begin, keys.find(',', begin) - begin, " " + value);
}

} // namespace meshwork::importer
