// Reads the text of a PTX module.
#pragma once

#include "test/Support/Emulator/ptx/Syntax.h"

#include "absl/status/statusor.h"

namespace meshwork::ptx {

/// Errors name the line and what is written there. Names of nested scopes
/// ({ .reg .b32 t; ... } of inline assembly) are made unique.
absl::StatusOr<ModuleSyntax> parseModule(std::string_view text);

} // namespace meshwork::ptx
