// How weights and gradients may be stored.
#pragma once

#include "lib/Spec/Spec.h"

namespace meshwork::driver {

/// All that `zero.gathered = "auto"` and `zero.reduce = "auto"` leave open,
/// from what keeps least to what keeps most.
std::vector<spec::Zero> waysOfZero(const spec::Spec &spec);

} // namespace meshwork::driver
