// Hugging Face configurations to models in the transformer dialect.
//
//   importer::Result result = importer::importConfig(json, "config.json");
//   if (!result.model) { print textOf(result.diagnostics); exit 65; }
//
// Families.cpp lists the families, by `model_type`. Keys known to change
// nothing are ignored. Any other key that the family does not read is an error
// that names it.
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
