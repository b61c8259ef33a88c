// A TOML text as a flat list of keys, with the command line's values on top.
// Hides the TOML library; other readers of TOML use it too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/Spec/Diagnostic.h"

namespace meshwork::spec {

struct Value {
  enum class Kind { boolean, integer, number, string, array, table, date };
  Kind kind = Kind::table;
  Location where;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0; // also set for an integer
  std::string text;
  std::vector<Value> items;      // of an array or a table
  std::vector<std::string> keys; // of a table, one for each item

  /// For messages: `"abc"`, `7`, `an array`.
  std::string found() const;
};

struct Entry {
  Value value;
  Location key;       // where the key itself stands
  std::string origin; // "spec.toml:3:5" or "--set batch.micro=8"
};

/// Dotted path -> value. Tables stand in the map too, whole and with each of
/// their keys. A part of a path that is no bare TOML key is in quotes, so it
/// equals no known key.
using Document = std::map<std::string, Entry>;

/// Why a text is not given to the TOML library, which calls itself for each
/// level; nothing of what a spec may hold.
std::optional<std::string> whyNotToml(std::string_view text);

/// What is likely wrong in a line that is not TOML: `; text stands in quotes,
/// like "tp=2"`, or nothing.
std::string hintOfSyntax(std::string_view line);

/// Appends to `diagnostics` what cannot be read.
Document readDocument(std::string_view text, const std::string &filename,
                      const std::vector<std::string> &overrides,
                      Diagnostics &diagnostics);

} // namespace meshwork::spec
