#include "runtime/machine/KnownCounts.h"
#include "lib/Plan/Writers.h"

namespace meshwork::runtime {

/// In a buffer that persists, a list may find the number of another microbatch.
KnownCounts::KnownCounts(const RankProgram &program) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers; // by writer
  for (uint32_t list = 0; list < program.table.lists().size(); ++list)
    for (const plan::Instruction *at : plan::listOf(program.program, list)) {
      const plan::Repeat *repeat = at->op_as_Repeat();
      if (!repeat || !plan::isCounted(*repeat))
        continue;
      uint32_t view = repeat->count();
      std::vector<plan::InstructionAt> writers =
          plan::writersOf(program.program, program.views, view);
      if (writers.empty() || writers.front().list != writers.back().list ||
          program.program.buffers()
              ->Get(program.views[view].buffer)
              ->persistent() ||
          !plan::repeatsOf(program.program, writers.back().list)
               .around(writers.back().instruction)
               .empty())
        continue;
      auto next = static_cast<uint32_t>(numbers.size());
      uint32_t number =
          numbers
              .try_emplace({writers.back().list, writers.back().instruction},
                           next)
              .first->second;
      counts[view] = {writers.back().list, writers.back().instruction, number};
    }
}

std::optional<int32_t> KnownCounts::find(const ListRun &list,
                                         uint32_t view) const {
  auto count = counts.find(view);
  if (count == counts.end() || count->second.list == list.list)
    return std::nullopt;
  auto found = known.find({count->second.number, list.microbatch});
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

void KnownCounts::keep(const ListRun &list, const plan::Turn &gate,
                       uint32_t view, int32_t count) {
  auto found = counts.find(view);
  if (found != counts.end() && found->second.list == list.list &&
      found->second.writer < gate.instruction)
    known[{found->second.number, list.microbatch}] = count;
}

} // namespace meshwork::runtime
