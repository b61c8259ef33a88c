// Which launcher started this process, as one of how many.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include <cstdint>
#include <string>

namespace meshwork::runtime {

struct Launch {
  bool isParallel = false;     // false: one process runs all ranks
  uint32_t rank = 0, size = 1; // 0: the launcher does not tell how many
  std::string source;          // "mpirun", for messages
  bool hasManager = false;     // by which processes of Open MPI find each other
  bool isOldManager = false;   // PMI-1 or PMI-2: few builds of Open MPI know it

  /// "one of 4", "one of several"
  std::string asOne() const;
};

/// Reads what launchers leave in the environment: those of MPI, of batch
/// systems, torchrun (the table is in Launch.cpp). A variable that says that
/// this process is one of several is never ignored. If it were, each process
/// would train all ranks.
///   srun           counts in its steps, not in a batch script around them.
///   below mpirun   only torchrun counts beside it. The daemons of mpirun
///                  inherit the variables of whatever started them.
/// Launchers must not contradict each other. invalidArgument when they do, or
/// are no numbers; the text is the same on every rank where the cause is.
absl::StatusOr<Launch>
detectLaunch(absl::FunctionRef<const char *(const char *name)> environment);

} // namespace meshwork::runtime
