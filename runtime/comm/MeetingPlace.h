// Where the processes of a launch meet without MPI, by the variables that
// launchers set.
#pragma once

#include "runtime/comm/Launch.h"
#include "runtime/comm/Meeting.h"

namespace meshwork::runtime {

/// Nothing where the environment does not tell.
///   MASTER_ADDR, MASTER_PORT  host of rank 0 and a port of its; the next one
///                             where torchrun itself listens there
///   SLURM_STEP_NODELIST       else its first host, and a port that follows
///                             from the numbers of job and step
///   MESHWORK_PORT             instead of either port
///   MESHWORK_SECRET, MESHWORK_SECRET_FILE  the job's secret, or a file with it
///                             that its owner alone may read
/// invalidArgument names the variable.
absl::StatusOr<std::optional<MeetingPlace>>
meetingPlace(const Launch &launch,
             absl::FunctionRef<const char *(const char *name)> environment);

} // namespace meshwork::runtime
