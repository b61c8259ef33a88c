// Keys that no spec has, and words that a key does not take, each with what was
// meant. Internal to lib/Spec.
#pragma once

#include "lib/Spec/Keys.h"

namespace meshwork::spec {

/// Whether no key has this path; then an error says so.
bool checkUnknown(const std::string &path, const Entry &entry,
                  const Document &document, Diagnostics &diagnostics);

/// Of a value that `key` refuses: `; write "ring"`, `; did you mean "ring"?`,
/// or nothing.
std::string hintOfChoice(const Key &key, const Value &value);

} // namespace meshwork::spec
