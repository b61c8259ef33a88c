// Keys of configurations that no family reads. Internal to lib/Import.
#pragma once

#include <string>
#include <string_view>

#include "lib/Import/Json.h"

namespace meshwork::importer {

/// Whether `name` is one of `words`, each of which a space follows.
bool isWordOf(std::string_view words, std::string_view name);

/// A key that changes the mathematics, unless its value is neutral or null.
struct MathKey {
  const char *name;
  Json::Kind kind; // of the neutral value
  double neutral;  // its value, 0 for false, "nothing in it" for a container
};

/// Null when it is not known as one.
const MathKey *findMathKey(const std::string &key);

/// Whether the key changes nothing about training, whatever its value.
bool isHarmless(const std::string &key);

} // namespace meshwork::importer
