// A run on processes that have found each other already: several may follow one
// another. run() of Run.h is one that begins and ends with its processes.
#pragma once

#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

/// By all processes. A failure is told to nobody yet: `processes.settle` does.
absl::Status runOn(Processes &processes, const RunOptions &options);

} // namespace meshwork::runtime
