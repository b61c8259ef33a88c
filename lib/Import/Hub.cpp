#include "lib/Import/Hub.h"

#include "lib/Import/Family.h"

#include <nlohmann/json.hpp>

namespace meshwork::importer {
namespace {
using Tree = nlohmann::ordered_json;

const Family &familyOf(const Tree &config) {
  // importConfig takes no other.
  return *findFamily(config.at("model_type").get<std::string>());
}

/// Whether the classes that it names have the head that is written.
bool namesHead(const Tree &config) {
  if (!config.contains("architectures") || config["architectures"].empty())
    return false;
  for (const Tree &name : config["architectures"])
    if (auto text = name.get<std::string>();
        !text.ends_with("ForCausalLM") && !text.ends_with("LMHeadModel"))
      return false;
  return true;
}
} // namespace

std::string hubConfig(std::string_view config, const std::string &dtype) {
  Tree json = Tree::parse(config);
  // Transformers has renamed it, and reads both.
  bool isNew = json.contains("dtype");
  if (isNew)
    json["dtype"] = dtype;
  if (!isNew || json.contains("torch_dtype"))
    json["torch_dtype"] = dtype;
  if (!namesHead(json))
    json["architectures"] = {familyOf(json).causal};
  return json.dump(2) + "\n";
}

std::string hubName(std::string_view config, const std::string &parameter) {
  std::string_view prefix = familyOf(Tree::parse(config)).prefix;
  bool isHead = parameter.starts_with("lm_head.");
  return isHead ? parameter : std::string(prefix) + parameter;
}

} // namespace meshwork::importer
