// What a configuration may say besides the keys a family reads.
// Internal to lib/Import.
#pragma once

#include <string_view>

#include "lib/Import/Config.h"

namespace meshwork::importer {

/// To be called after everything else was read: errors for keys that change the
/// mathematics and for keys nobody knows. `harmless` are keys that this family
/// does not read, each with a space behind.
void checkOtherKeys(Config &config, std::string_view harmless);

} // namespace meshwork::importer
