// The folder of --checkpoint before a run begins.
#pragma once

#include "runtime/io/Files.h"
#include "runtime/rank/Processes.h"

namespace meshwork::runtime {

/// By all processes. Makes the folder, looks that all processes see one and the
/// same and may write to it (73, with the rank and its host), and that nobody
/// else's checkpoints are in it (64). Removes what saves that were cut off have
/// left there. What it gives keeps other runs on this machine from using the
/// folder while it lives (73). Fine without --checkpoint.
absl::StatusOr<FileDescriptor> prepareCheckpoints(const RunOptions &options,
                                                  const Processes &processes);

} // namespace meshwork::runtime
