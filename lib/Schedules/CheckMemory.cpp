// What a rank keeps at each place of its order.
#include "lib/Schedules/Checks.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"

namespace meshwork::schedules {

void checkMemory(const Table &table, double memory, double stash,
                 Faults &faults) {
  for (size_t rank = 0; memory > 0 && rank < table.ranks.size(); ++rank) {
    auto [most, above] = keptBy(table.ranks[rank], stash, memory);
    if (above < table.ranks[rank].size())
      faults.at(rank, above,
                absl::StrCat("exceeds the ", memory,
                             memory == 1 ? " microbatch" : " microbatches",
                             " that may be kept at once; the rank keeps up to ",
                             most));
  }
}

} // namespace meshwork::schedules
