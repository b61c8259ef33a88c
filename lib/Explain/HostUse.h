// What a rank keeps in the host's memory, and what a step moves between there
// and the device.
#pragma once

#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// In bytes, of one rank.
struct HostUse {
  uint64_t kept = 0;               // the arena in the host's memory
  uint64_t toDevice = 0, back = 0; // of a step
};

HostUse hostUse(const plan::Program &program, const Listing &listing);
/// Of each of these the most that a rank has.
HostUse mostHostUse(const plan::Plan &plan);

/// What lies there, of any rank: "optimizer", or "optimizer, activations".
std::string kindsOnHost(const plan::Plan &plan);

/// A line of people's text; empty where nothing lies there.
std::string hostText(const plan::Program &program, const Listing &listing);

} // namespace meshwork::explain
