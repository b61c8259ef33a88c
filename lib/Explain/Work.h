// What a step computes: flops and least traffic, by kind of instruction.
#pragma once

#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// Instructions of one kind. Flops and bytes are those of one rank and one
/// optimizer step; bytes are the least traffic, each operand and result once.
struct Work {
  std::string kind;
  uint64_t instructions = 0; // in the program
  uint64_t runs = 0;         // in a step
  uint64_t flops = 0;
  uint64_t bytes = 0;
};

/// All kinds of the phases that run in a step, most flops first, then most
/// bytes.
std::vector<Work> workByKind(const Listing &listing);
/// One phase, once; `kind` is its name.
Work workOfPhase(const Listing &listing, const Phase &phase);

} // namespace meshwork::explain
