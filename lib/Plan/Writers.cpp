#include "lib/Plan/Writers.h"

#include "lib/Plan/Operands.h"
#include "lib/Plan/Overlap.h"
#include "lib/Plan/ProgramLives.h"

namespace meshwork::plan {

std::vector<InstructionAt> writersOf(const Program &program,
                                     absl::Span<const ViewInfo> views,
                                     uint32_t view) {
  std::vector<InstructionAt> writers;
  for (uint32_t list = 0; list < orEmpty(program.lists()).size(); ++list)
    for (uint32_t i = 0; i < listOf(program, list).size(); ++i) {
      bool writes = false;
      forEachOperand(*listOf(program, list).Get(i), [&](const Operand &one) {
        writes |= one.written && mayShareBytes(views[one.view], views[view]);
      });
      if (writes)
        writers.push_back({list, i});
    }
  return writers;
}

} // namespace meshwork::plan
