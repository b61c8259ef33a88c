// Which launcher started this process, as one of how many.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include <cstdint>
#include <string>

namespace meshwork::runtime {

struct Launch {
  bool isParallel = false; // false: one process runs all ranks
  uint32_t rank = 0, size = 1;
  std::string source;      // "mpirun", for messages
  bool hasManager = false; // by which processes of MPI find each other (PMI)
};

/// Reads what mpirun, srun and torchrun leave in the environment. srun's
/// variables count in its steps, and not below mpirun, whose daemons inherit
/// them. Those of torchrun must not contradict the others. invalidArgument when
/// they do, or are no numbers; the text is the same on every rank where the
/// cause is.
absl::StatusOr<Launch>
detectLaunch(absl::FunctionRef<const char *(const char *name)> environment);

} // namespace meshwork::runtime
