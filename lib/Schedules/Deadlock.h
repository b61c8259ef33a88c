// Whether ranks wait for one another for ever. Internal to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_DEADLOCK_H
#define MESHWORK_LIB_SCHEDULES_DEADLOCK_H

#include "lib/Schedules/Index.h"
#include "lib/Schedules/Verdict.h"

#include "absl/status/status.h"

namespace meshwork::schedules {

/// OK, or the shortest cycle, a line for each action in it. Of a table that
/// passes all other checks.
absl::Status checkDeadlock(const Table &table, const Index &index,
                           const JudgeOptions &options);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_DEADLOCK_H
