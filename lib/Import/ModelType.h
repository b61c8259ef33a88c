// Which model a configuration is of. Internal to lib/Import.
#pragma once

#include "lib/Import/Family.h"

namespace meshwork::importer {

/// The family that `model_type` names; null after an error, which says what
/// kind of model it is where that is known.
const Family *readFamily(Config &config);

/// Models that put a language model beside a part for pictures or sound keep
/// its keys in an object: the key of that, or "".
std::string languageModelKey(Config &config);

/// Refuses classes without the loss that is trained. A class without a head
/// (GPT2Model) is taken: the family has the head.
void checkArchitectures(Config &config, const Family &family);

} // namespace meshwork::importer
