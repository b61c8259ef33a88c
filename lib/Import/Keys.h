// What a configuration may say besides the keys a family reads.
// Internal to lib/Import.
#pragma once

#include "lib/Import/Config.h"

namespace meshwork::importer {

/// To be called after everything else was read: errors for keys that change the
/// mathematics, warnings for keys nobody knows; `readKeys` serve as
/// suggestions.
void checkOtherKeys(Config &config, const std::vector<std::string> &readKeys);

} // namespace meshwork::importer
