// Where the processes of a launch meet without MPI, by the variables that
// launchers set.
#pragma once

#include "runtime/comm/Launch.h"
#include "runtime/comm/Meeting.h"

namespace meshwork::runtime {

/// Nothing where the environment does not tell.
///   MASTER_ADDR, MASTER_PORT  The host of rank 0, and a port there. Where
///                             torchrun listens at it, the next one.
///   SLURM_STEP_NODELIST       Else its first host, where srun must have put
///                             rank 0. The port follows from the numbers of
///                             job and step.
///   MESHWORK_PORT             Instead of either port.
///   MESHWORK_SECRET           The job's secret.
///   MESHWORK_SECRET_FILE      A file with it that its owner alone may read.
/// invalidArgument names the variable.
absl::StatusOr<std::optional<MeetingPlace>>
meetingPlace(const Launch &launch,
             absl::FunctionRef<const char *(const char *name)> environment);

} // namespace meshwork::runtime
