// Whether a launcher puts ranks where their plan expects them.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork {

/// A plan whose spec names a machine expects its `ranks_per_node` neighbours on
/// each host, in the order of their numbers. `hosts` has each rank's.
/// Empty where they are there, or where no machine is named. Else it tells what
/// was found, and what a step should take there: an estimate, with as many
/// neighbours on each host as are on the host with the fewest.
std::string warningOfHosts(const plan::Plan &plan,
                           const std::vector<std::string> &hosts);

} // namespace meshwork
