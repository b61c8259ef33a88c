#include "lib/Schedules/Verdict.h"

#include "lib/Schedules/Checks.h"
#include "lib/Schedules/Deadlock.h"

namespace meshwork::schedules {

absl::Status judge(const Table &table, const JudgeOptions &options) {
  Faults faults(table);
  checkRanges(table, faults);
  if (!faults.none())
    return faults.status();
  Index index(table);
  checkPlaces(table, index, faults);
  checkCounts(table, index, faults);
  checkOrder(table, index, faults);
  checkTransfers(table, index, faults);
  checkMemory(table, options.memory, options.stash, faults);
  if (!faults.none())
    return faults.status();
  return checkDeadlock(table, index, options);
}

} // namespace meshwork::schedules
