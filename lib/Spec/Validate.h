// What keys must be together. Internal to lib/Spec.
#pragma once

#include "lib/Spec/Document.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {

/// Fills the defaults that follow from other keys, then checks across keys.
/// Every key was read without an error.
void completeAndValidate(const Document &document, const std::string &filename,
                         Spec &spec, Diagnostics &diagnostics);

} // namespace meshwork::spec
