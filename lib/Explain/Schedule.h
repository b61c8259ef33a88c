// In which order a rank works: actions of a step, and each instruction.
#pragma once

#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// The actions of each program in order, as its table has them: "0F0", "0B0"
/// for each microbatch. One string each.
std::vector<std::vector<std::string>> actions(const plan::Plan &plan);
/// Those of one program as a line; the middle of a long one is left out.
std::string actionsText(const plan::Program &program);

/// A line for each instruction of `program`, by phase.
std::string instructionsText(const plan::Plan &plan,
                             const plan::Program &program,
                             const Listing &listing);

} // namespace meshwork::explain
