// Whether a launcher puts ranks where their plan expects them.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork {

/// A plan whose spec names a machine expects its `ranks_per_node` neighbours on
/// each host, in the order of their numbers. "" where `hosts`, by rank, keeps
/// to that, or no machine is named; else what was found, and what a step should
/// take there. That is an estimate: it takes as many neighbours on each host as
/// are on the host with the fewest.
std::string warningOfHosts(const plan::Plan &plan,
                           const std::vector<std::string> &hosts);

} // namespace meshwork
