// What keys must be together. Internal to lib/Spec.
#pragma once

#include <set>

#include "lib/Spec/Document.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {

/// Fills the defaults that follow from other keys, then checks across keys.
/// Keys in `broken`, those without a usable value and unknown ones, have their
/// errors already; a check that needs one of them is left out, as it would
/// mislead.
void completeAndValidate(const Document &document, const std::string &filename,
                         const std::set<std::string> &broken, Spec &spec,
                         Diagnostics &diagnostics);

} // namespace meshwork::spec
