// The memory that copies of states take, while checkpoints are written from
// them.
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/machine/Cpus.h"

namespace meshwork::runtime {

/// Bytes of the copies of this process's ranks; none without --checkpoint, or
/// with --checkpoint-sync. Fails with resourceExhausted when they do not fit
/// beside the `planned` bytes of this process, and says what to leave out.
///   ranksHere  ranks that take memory of this machine
absl::StatusOr<uint64_t> checkCopies(const plan::Plan &plan,
                                     const RunOptions &options,
                                     const std::vector<CoreShare> &cores,
                                     uint32_t ranksHere, uint64_t planned);

} // namespace meshwork::runtime
