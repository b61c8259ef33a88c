#include "lib/Plan/Channels.h"
#include "lib/Plan/Repeats.h"
#include <algorithm>

namespace meshwork::plan {

Channels::Channels(const Instructions &list)
    : list(list), gates(list.size() + 1) {
  for (const RepeatShape &repeat : repeatsOf(&list))
    if (repeat.isCounted)
      gates[repeat.begin - 1] = gates[repeat.end] = true;
}

void Channels::pass(uint32_t index, absl::FunctionRef<void(uint32_t)> ended) {
  enter(index);
  const Instruction &at = *list.Get(index);
  if (const Wait *wait = at.op_as_Wait()) {
    Channel &of = all[wait->channel()];
    // Whether the count is right is another question (PlanCheckAsync.cpp).
    uint32_t last = std::min(wait->count(), started(wait->channel()));
    while (of.ended < last)
      ended(of.started[of.ended++]);
  } else if (at.channel() > 0) {
    all[at.channel()].started.push_back(index);
  }
}

std::vector<uint32_t> Channels::underWay() const {
  std::vector<uint32_t> found;
  for (const Channel &of : all)
    found.insert(found.end(), of.started.begin() + of.ended, of.started.end());
  return found;
}

} // namespace meshwork::plan
