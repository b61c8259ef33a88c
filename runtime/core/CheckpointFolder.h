// The folder of --checkpoint before a run begins.
#pragma once

#include "runtime/core/Processes.h"

namespace meshwork::runtime {

/// By all processes. Makes the folder, looks that all processes see one and the
/// same and may write to it (73, with the rank and its host). Fine without
/// --checkpoint.
absl::Status prepareCheckpoints(const RunOptions &options,
                                const Processes &processes);

} // namespace meshwork::runtime
