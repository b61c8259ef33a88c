#include "runtime/io/HubNames.h"

namespace meshwork::runtime {
namespace {

constexpr std::string_view prefixes[] = {"transformer.", "model."};

/// Takes `tail` off the end; false when it is not there.
bool consumeSuffix(std::string_view &name, std::string_view tail) {
  if (!name.ends_with(tail))
    return false;
  name.remove_suffix(tail.size());
  return true;
}

/// Whether `name` is `tail`, or ends with it after a dot.
bool endsInPart(std::string_view name, std::string_view tail) {
  return consumeSuffix(name, tail) && (name.empty() || name.back() == '.');
}

/// Whether the last two parts of a name are "h" and a number.
bool endsInLayer(std::string_view name) {
  size_t last = name.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < name.size() &&
         endsInPart(name.substr(0, last + 1), "h.");
}

} // namespace

std::vector<std::string> namesInFiles(std::string_view parameter) {
  std::vector<std::string> names{std::string(parameter)};
  for (std::string_view prefix : prefixes)
    names.push_back(parameter.starts_with(prefix)
                        ? std::string(parameter.substr(prefix.size()))
                        : std::string(prefix) + std::string(parameter));
  return names;
}

bool followsFromConfig(std::string_view tensor) {
  if (endsInPart(tensor, "rotary_emb.inv_freq"))
    return true;
  return (consumeSuffix(tensor, ".attn.bias") ||
          consumeSuffix(tensor, ".attn.masked_bias")) &&
         endsInLayer(tensor);
}

bool isTokenEmbedding(std::string_view parameter) {
  return endsInPart(parameter, "wte.weight") ||
         endsInPart(parameter, "embed_tokens.weight");
}

} // namespace meshwork::runtime
