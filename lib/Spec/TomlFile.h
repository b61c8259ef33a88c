// What all readers and writers of a user's TOML files share.
#pragma once

#include <string>

#include "lib/Spec/Diagnostic.h"

namespace meshwork {

/// By line, column and text: as a reader meets them, those of the file as a
/// whole first. Readers find mistakes key by key.
void sortByPlace(Diagnostics &diagnostics);

/// The shortest digits that read back as `value`: `0.1`, `1e+30`, `3`.
std::string numberText(double value);

/// The same as a TOML float, never as an integer: `3.0`.
std::string tomlNumber(double value);

} // namespace meshwork
