// What a step should take on the machine that a plan was made for.
#pragma once

#include "lib/Cost/ListClock.h"
#include "lib/Cost/Times.h"
#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// The machine of the plan's spec, and what is wrong with it.
cost::MachineResult machineOf(const plan::Plan &plan);

struct Estimate {
  struct OfList {
    std::string name;
    uint64_t runs = 0;  // in a step
    double seconds = 0; // of all runs
    uint32_t list = 0;  // its number in the program
  };
  struct OfKind {
    std::string kind;
    double seconds = 0; // in a step, with what is hidden
  };
  double seconds = 0; // of what the rank runs in a step
  std::vector<OfList> lists;
  std::vector<OfKind> kinds; // the longest first
  cost::Exposed exposed;     // of the collectives and copies in `seconds`
};

/// Times on the plan's mesh.
cost::Times timesOn(const plan::Plan &plan, const cost::Machine &machine,
                    cost::Ranks ranks);

/// Of one rank whose peers are never late (lib/Cost/OfPlan.h).
Estimate estimate(const plan::Plan &plan, const plan::Program &program,
                  const Listing &listing, const cost::Machine &machine,
                  cost::Ranks ranks);

/// The machine, and the estimates by list and by kind of work; or why there
/// are none.
std::string estimateText(const plan::Plan &plan, const plan::Program &program,
                         const Listing &listing);

/// "1.25 s", "12.5 ms", "850 us".
std::string timeText(double seconds);

} // namespace meshwork::explain
