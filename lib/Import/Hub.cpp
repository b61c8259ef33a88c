#include "lib/Import/Hub.h"

#include <nlohmann/json.hpp>

namespace meshwork::importer {
namespace {
using Json = nlohmann::ordered_json;

/// A family's class for language models in Transformers, and what stands before
/// the names of its parameters, unless they are the head's.
struct Class {
  std::string_view family, name, prefix;
};
constexpr Class classes[] = {{"gpt2", "GPT2LMHeadModel", "transformer."},
                             {"llama", "LlamaForCausalLM", ""},
                             {"mistral", "MistralForCausalLM", ""},
                             {"qwen2", "Qwen2ForCausalLM", ""},
                             {"qwen3", "Qwen3ForCausalLM", ""},
                             {"mixtral", "MixtralForCausalLM", ""},
                             {"dots1", "Dots1ForCausalLM", ""},
                             {"olmoe", "OlmoeForCausalLM", ""},
                             {"qwen2_moe", "Qwen2MoeForCausalLM", ""},
                             {"qwen3_moe", "Qwen3MoeForCausalLM", ""}};

const Class &classOf(const Json &config) {
  auto family = config.at("model_type").get<std::string>();
  for (const Class &one : classes)
    if (one.family == family)
      return one;
  return classes[1]; // importConfig takes no other family
}

/// Whether the classes that it names have the head that is written.
bool namesHead(const Json &config) {
  if (!config.contains("architectures") || config["architectures"].empty())
    return false;
  for (const Json &name : config["architectures"])
    if (auto text = name.get<std::string>();
        !text.ends_with("ForCausalLM") && !text.ends_with("LMHeadModel"))
      return false;
  return true;
}
} // namespace

std::string hubConfig(std::string_view config, const std::string &dtype) {
  Json json = Json::parse(config);
  // Transformers has renamed it, and reads both.
  bool isNew = json.contains("dtype");
  if (isNew)
    json["dtype"] = dtype;
  if (!isNew || json.contains("torch_dtype"))
    json["torch_dtype"] = dtype;
  if (!namesHead(json))
    json["architectures"] = {classOf(json).name};
  return json.dump(2) + "\n";
}

std::string hubName(std::string_view config, const std::string &parameter) {
  std::string_view prefix = classOf(Json::parse(config)).prefix;
  bool isHead = parameter.starts_with("lm_head.");
  return isHead ? parameter : std::string(prefix) + parameter;
}

} // namespace meshwork::importer
