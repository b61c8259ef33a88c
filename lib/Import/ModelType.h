// Which model a configuration is of. Internal to lib/Import.
#pragma once

#include "lib/Import/Family.h"

namespace meshwork::importer {

/// The family that `model_type` names; null after an error, which says what
/// kind of model it is where that is known.
const Family *readFamily(Config &config);

/// Refuses classes without the loss that is trained. A class without a head
/// (GPT2Model) is taken: the family has the head.
void checkArchitectures(Config &config, const Family &family);

} // namespace meshwork::importer
