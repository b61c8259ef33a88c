// Who writes a number that the host reads.
#pragma once

#include "lib/Plan/Views.h"
#include <vector>

namespace meshwork::plan {

/// An instruction of a program.
struct InstructionAt {
  uint32_t list, instruction;
};

/// The instructions that may write bytes of the view, list by list. Indices of
/// the program have been checked; `views` are all of it.
std::vector<InstructionAt> writersOf(const Program &program,
                                     absl::Span<const ViewInfo> views,
                                     uint32_t view);

} // namespace meshwork::plan
