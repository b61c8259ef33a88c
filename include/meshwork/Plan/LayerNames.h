// Names of values with what repeated layers share written once. For people, and
// to store it once: a layer's number is known (Parameter.layer), not looked
// for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace meshwork::plan {

/// "model.layers.7" and ".mlp" of "model.layers.7.mlp" and 7: up to the first
/// part that is the layer's number, and the rest. "" and the whole name where
/// no part is, or the layer is negative.
inline std::pair<std::string_view, std::string_view>
splitAtLayer(std::string_view name, int64_t layer) {
  std::string number = layer < 0 ? "" : std::to_string(layer);
  for (size_t begin = 0; !number.empty() && begin < name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    if (name.substr(begin, end - begin) == number)
      return {name.substr(0, end), name.substr(end)};
    begin = end + 1;
  }
  return {"", name};
}

/// "model.layers.*.mlp" of "model.layers.7.mlp" and 7.
inline std::string overLayers(std::string_view name, int64_t layer) {
  auto [scope, leaf] = splitAtLayer(name, layer);
  if (scope.empty())
    return std::string(name);
  scope.remove_suffix(std::to_string(layer).size());
  return std::string(scope) + "*" + std::string(leaf);
}

} // namespace meshwork::plan
