// One reader for each family of models. Internal to lib/Import.
#pragma once

#include <optional>
#include <string>

#include "lib/Import/Config.h"

namespace meshwork::importer {

/// What a family's reader works on.
struct Source {
  const Json &object;
  std::string text; // of the object, on one line
  std::string filename;
  Diagnostics &diagnostics;
};

/// The model's text; nothing when there were errors. `config` is the source's.
std::optional<std::string> importGpt2(const Source &source, Config &config);

/// llama and the families like it, told apart by `family`.
std::optional<std::string> importLlama(const Source &source, Config &config,
                                       const std::string &family);

/// Largest number of layers; a model's text grows with it.
inline constexpr int64_t maxLayers = 4096;
/// Largest number of elements of one parameter, 4 TiB in f32.
inline constexpr int64_t maxElements = int64_t{1} << 40;

/// An error at `key` when the product of `sizes` is above maxElements.
void checkElements(Config &config, const std::string &key,
                   std::initializer_list<int64_t> sizes);

/// Our name of a Hugging Face activation; an error when there is none.
std::string readActivation(Config &config, const std::string &key,
                           const char *fallback);

} // namespace meshwork::importer
