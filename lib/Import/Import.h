// Hugging Face configurations to models in the transformer dialect.
//
//   importer::Result result = importer::importConfig(json, "config.json");
//   if (!result.model) { print textOf(result.diagnostics); exit 65; }
//
// Families, by `model_type`: gpt2, llama, mistral, qwen2, qwen3. A key that
// changes the mathematics and is not supported is an error that names it; keys
// known to change nothing are ignored; any other key is a warning.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/Spec/Diagnostic.h"

namespace meshwork::importer {

struct Result {
  std::optional<std::string>
      model; // text; absent when a diagnostic is an error
  Diagnostics diagnostics;
};

/// `json` is the text of a config.json; `filename` is for messages and for the
/// model's first line. Lists all problems at once.
Result importConfig(std::string_view json, const std::string &filename);

} // namespace meshwork::importer
