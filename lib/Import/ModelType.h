// Which model a configuration is of. Internal to lib/Import.
#pragma once

#include <string>

#include "lib/Import/Config.h"

namespace meshwork::importer {

/// The family that `model_type` names; empty after an error, which says what
/// kind of model it is where that is known.
std::string readFamily(Config &config);

/// Refuses classes without the loss that is trained. A class without a head
/// (GPT2Model) is taken: the family has the head.
void checkArchitectures(Config &config, const std::string &family);

} // namespace meshwork::importer
