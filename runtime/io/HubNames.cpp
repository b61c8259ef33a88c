#include "runtime/io/HubNames.h"

#include <algorithm>
#include <iterator>

namespace meshwork::runtime {
namespace {

constexpr std::string_view prefixes[] = {"transformer.", "model.", "gpt_neox."};
/// Where models with other parts keep "model.", as classes name it and as files
/// of older ones do.
constexpr std::string_view modelsWithin[] = {
    "language_model.model.", "model.language_model.", "model.text_model."};
constexpr std::string_view modelPrefix = "model.";
/// What begins the names of the other parts.
constexpr std::string_view otherParts[] = {
    "vision_tower.",          "vision_model.",    "visual.",
    "multi_modal_projector.", "mm_projector.",    "connector.",
    "audio_tower.",           "audio_projector.", "image_newline"};

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

/// Whether the last two parts of a name are `layers` and a number.
bool endsInLayer(std::string_view name, std::string_view layers) {
  size_t last = name.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < name.size() &&
         endsInPart(name.substr(0, last + 1), layers);
}

} // namespace

std::vector<std::string> namesInFiles(std::string_view parameter) {
  std::vector<std::string> names{std::string(parameter)};
  for (std::string_view prefix : prefixes)
    names.push_back(parameter.starts_with(prefix)
                        ? std::string(parameter.substr(prefix.size()))
                        : std::string(prefix) + std::string(parameter));
  if (parameter.starts_with(modelPrefix))
    for (std::string_view within : modelsWithin)
      names.push_back(std::string(within) +
                      std::string(parameter.substr(modelPrefix.size())));
  names.push_back("language_model." + std::string(parameter));
  return names;
}

bool isOfOtherPart(std::string_view tensor) {
  if (tensor.starts_with(modelPrefix))
    tensor.remove_prefix(modelPrefix.size());
  return std::any_of(
      std::begin(otherParts), std::end(otherParts),
      [&](std::string_view part) { return tensor.starts_with(part); });
}

bool followsFromConfig(std::string_view tensor) {
  if (endsInPart(tensor, "rotary_emb.inv_freq"))
    return true;
  for (std::string_view tail : {".bias", ".masked_bias"}) {
    std::string_view name = tensor;
    if (!consumeSuffix(name, tail))
      continue;
    if (consumeSuffix(name, ".attn") && endsInLayer(name, "h."))
      return true;
    if (consumeSuffix(name, ".attention") && endsInLayer(name, "layers."))
      return true;
  }
  return false;
}

bool isTokenEmbedding(std::string_view parameter) {
  return endsInPart(parameter, "wte.weight") ||
         endsInPart(parameter, "embed_tokens.weight");
}

} // namespace meshwork::runtime
