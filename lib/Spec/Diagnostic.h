// What is wrong in a file a user wrote, and where. Readers collect all of it
// before they give up, so that one run shows every mistake.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshwork/Text/Escape.h"

namespace meshwork {

/// A place in a file, 1-based; line 0 is the file as a whole, and column 0 the
/// line. For a value from the command line `file` is that argument.
struct Location {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  /// "spec.toml:3:5"
  std::string text() const;
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Location where;
  std::string message;
  /// Lines that stand below the message, a table for example; none: "".
  std::string details = {};
  /// An error whose key would change nothing: a spec without it is the same.
  bool isMeaningless = false;
  /// "spec.toml:3:5: error: batch.micro: found 0, expected ..."
  std::string text() const;
};

using Diagnostics = std::vector<Diagnostic>;

bool hasErrors(const Diagnostics &diagnostics);

/// One line each.
std::string textOf(const Diagnostics &diagnostics);

/// `; did you mean "..."?` for the candidate with the fewest single-character
/// edits, or nothing when none is near.
std::string suggestion(std::string_view found,
                       const std::vector<std::string> &candidates);

} // namespace meshwork
