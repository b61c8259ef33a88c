// JSON as a small tree, from a reader that refuses what a tree would hide.
// Internal to lib/Import.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/Spec/Diagnostic.h"

namespace meshwork::importer {

struct Json {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0; // also set for an integer
  std::string text;
  std::vector<Json> items;       // of an array or an object
  std::vector<std::string> keys; // of an object, one for each item

  /// For messages: `"abc"`, `7`, `an array`.
  std::string found() const;
  bool isNumber() const {
    return kind == Kind::integer || kind == Kind::number;
  }
};

/// Refuses a byte order mark, NaN, numbers out of a double's range, and whole
/// numbers out of 64 bits. Also refuses equal keys of one object, more than 64
/// levels and more than 16 MiB. Each is an error in `diagnostics`; after one
/// the result is null.
Json parseJson(std::string_view text, const std::string &filename,
               Diagnostics &diagnostics);

/// JSON without the white space around its values: on one line.
std::string compactJson(std::string_view text);

/// The value of a key of an object that parseJson has taken, on one line.
std::string memberText(std::string_view text, const std::string &key);

} // namespace meshwork::importer
