// Runs a table step by step, as its ranks would: the reference that the
// deadlock check is compared with. Knows no graph.
#ifndef MESHWORK_TEST_SCHEDULES_TOKENMACHINE_H
#define MESHWORK_TEST_SCHEDULES_TOKENMACHINE_H

#include "lib/Schedules/Verdict.h"

namespace meshwork::schedules {

/// Whether all ranks come to their ends. A rank stands at its next action until
/// it can do it; a transfer is only posted, and moves when both ends are.
bool runsToItsEnd(const Table &table, const JudgeOptions &options);

} // namespace meshwork::schedules

#endif // MESHWORK_TEST_SCHEDULES_TOKENMACHINE_H
