#include "runtime/comm/Launch.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <optional>

namespace meshwork::runtime {
namespace {
using Environment = absl::FunctionRef<const char *(const char *)>;

absl::Status badValue(const char *name, const char *value) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the environment variable ", name, " is \"", value ? value : "",
      "\", expected a number: start all ranks "
      "the same way, or unset it"));
}

absl::StatusOr<std::optional<Launch>> read(Environment environment,
                                           const char *source,
                                           const char *rankName,
                                           const char *sizeName) {
  const char *rank = environment(rankName), *size = environment(sizeName);
  if (!rank && !size)
    return std::nullopt;
  Launch launch{true, 0, 1, source};
  if (!rank || !absl::SimpleAtoi(rank, &launch.rank))
    return badValue(rankName, rank);
  if (!size || !absl::SimpleAtoi(size, &launch.size))
    return badValue(sizeName, size);
  if (launch.rank >= launch.size)
    return absl::InvalidArgumentError(
        absl::StrCat(rankName, " is ", launch.rank, ", but ", sizeName, " is ",
                     launch.size, ": ranks count from 0"));
  return launch;
}
} // namespace

absl::StatusOr<Launch> detectLaunch(Environment environment) {
  bool byMpirun = environment("OMPI_COMM_WORLD_SIZE") != nullptr;
  bool hasPmi = environment("PMI_RANK") || environment("PMIX_RANK");
  // In a step of srun, not in a batch script around it.
  bool inStep = environment("SLURM_STEP_NUM_TASKS") != nullptr;
  struct Source {
    const char *name, *rank, *size;
    bool counts;
  };
  Launch found;
  for (const Source &source :
       {Source{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true},
        Source{"srun", "SLURM_PROCID",
               inStep ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
               (hasPmi || inStep) && !byMpirun},
        Source{"torchrun", "RANK", "WORLD_SIZE", true}}) {
    if (!source.counts)
      continue;
    auto launch = read(environment, source.name, source.rank, source.size);
    if (!launch.ok())
      return launch.status();
    if (!*launch)
      continue;
    const Launch &now = **launch;
    if (found.isParallel && (found.rank != now.rank || found.size != now.size))
      return absl::InvalidArgumentError(absl::StrCat(
          found.source, " and ", now.source, " disagree: rank ", found.rank,
          " of ", found.size, ", and ", source.rank, "=", now.rank, " of ",
          source.size, "=", now.size, "; unset the variables of one of them"));
    // A lone process without a process manager is a plain run.
    if (!found.isParallel && (byMpirun || hasPmi || now.size > 1))
      found = now;
  }
  found.hasManager = byMpirun || hasPmi;
  return found;
}

} // namespace meshwork::runtime
