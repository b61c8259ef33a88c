#include "runtime/comm/Launch.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <optional>

namespace meshwork::runtime {
namespace {
using Environment = absl::FunctionRef<const char *(const char *)>;

/// When the variables of a launcher count.
enum class Counts : uint8_t {
  always,
  notBelowMpirun, // its daemons inherit what started them
  inStepOfSrun,   // as well; a batch script around srun has some of them
  aloneInStep     // as notBelowMpirun; in a step both must be there
};
/// By what means processes of Open MPI find each other.
enum class Reach : uint8_t { itself, pmi, pmix };

struct Launcher {
  const char *name, *rank, *size;
  Counts counts = Counts::notBelowMpirun;
  Reach reach = Reach::pmix;
};

// Variables: the manuals of each; for PMI also MPICH's Hydra and Intel MPI.
constexpr Launcher launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", Counts::always,
     Reach::itself},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", Counts::inStepOfSrun,
     Reach::pmi},
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", Counts::notBelowMpirun,
     Reach::pmi},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"MVAPICH's launcher", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"a launcher like MPICH's mpiexec (also Intel's and Cray's)", "PMI_RANK",
     "PMI_SIZE", Counts::aloneInStep},
    {"Platform MPI's mpirun", "MPI_RANKID", "MPI_NRANKS"},
    {"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE", Counts::always}};

// Asked when none of the others is there. Without a size, or of one machine
// alone, they tell at least that a process is one of several.
constexpr Launcher incomplete[] = {
    {"PALS", "PALS_RANKID", nullptr},
    {"aprun", "ALPS_APP_PE", nullptr},
    {"a launcher with PMIx", "PMIX_RANK", nullptr},
    {"a launcher like MPICH's mpiexec", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

/// Of one of the two variables of a launcher; `other` is there.
absl::Status badValue(const char *name, const char *value, const char *other) {
  if (!value)
    return absl::InvalidArgumentError(
        absl::StrCat("the environment variable ", other, " is set and ", name,
                     " is not: start all ranks the same way, or unset it"));
  return absl::InvalidArgumentError(absl::StrCat(
      "the environment variable ", name, " is \"", value,
      "\", expected a number: start all ranks the same way, or unset it"));
}

class Detection {
public:
  explicit Detection(Environment environment) : environment(environment) {}
  absl::StatusOr<Launch> run();

private:
  bool has(const char *name) const { return environment(name) != nullptr; }
  bool counts(const Launcher &launcher) const;
  bool reaches(const Launcher &launcher) const;
  absl::StatusOr<std::optional<Launch>> read(const Launcher &launcher) const;
  absl::Status add(const Launcher &launcher, const Launch &now);

  Environment environment;
  bool byMpirun = has("OMPI_COMM_WORLD_SIZE"), hasPmix = has("PMIX_RANK"),
       inStep = has("SLURM_STEP_NUM_TASKS");
  bool isTold = false; // by a launcher that tells how many there are
  Launch found;
};

bool Detection::counts(const Launcher &launcher) const {
  switch (launcher.counts) {
  case Counts::always:
    return true;
  case Counts::notBelowMpirun:
    return !byMpirun;
  case Counts::inStepOfSrun:
    return !byMpirun && (inStep || hasPmix);
  case Counts::aloneInStep:
    return !byMpirun && (!inStep || (has(launcher.rank) && has(launcher.size)));
  }
  return true;
}

bool Detection::reaches(const Launcher &launcher) const {
  return launcher.reach == Reach::itself || byMpirun || hasPmix ||
         (launcher.reach == Reach::pmi && has("PMI_RANK"));
}

absl::StatusOr<std::optional<Launch>>
Detection::read(const Launcher &launcher) const {
  // The step's number, where there is a step.
  const char *sizeName = launcher.counts == Counts::inStepOfSrun && !inStep
                             ? "SLURM_NTASKS"
                             : launcher.size;
  const char *rank = environment(launcher.rank),
             *size = sizeName ? environment(sizeName) : nullptr;
  if (!rank && !size)
    return std::nullopt;
  Launch launch{true, 0, 0, launcher.name, reaches(launcher)};
  launch.isOldManager = launch.hasManager && launcher.reach == Reach::pmi &&
                        !byMpirun && !hasPmix;
  if (!rank || !absl::SimpleAtoi(rank, &launch.rank))
    return badValue(launcher.rank, rank, sizeName);
  if (!sizeName)
    return launch;
  if (!size || !absl::SimpleAtoi(size, &launch.size))
    return badValue(sizeName, size, launcher.rank);
  if (launch.rank >= launch.size)
    return absl::InvalidArgumentError(
        absl::StrCat(launcher.rank, " is ", launch.rank, ", but ", sizeName,
                     " is ", launch.size, ": ranks count from 0"));
  return launch;
}

absl::Status Detection::add(const Launcher &launcher, const Launch &now) {
  if (found.isParallel && (found.rank != now.rank || found.size != now.size))
    return absl::InvalidArgumentError(absl::StrCat(
        found.source, " and ", now.source, " disagree: rank ", found.rank,
        " of ", found.size, ", and ", launcher.rank, "=", now.rank, " of ",
        launcher.size, "=", now.size, "; unset the variables of one of them"));
  // A lone process without a process manager is a plain run.
  bool isManaged = now.hasManager && !now.isOldManager;
  if (!found.isParallel && (isManaged || now.size != 1))
    found = now;
  return absl::OkStatus();
}

absl::StatusOr<Launch> Detection::run() {
  for (const Launcher &launcher : launchers) {
    if (!counts(launcher))
      continue;
    auto now = read(launcher);
    if (!now.ok())
      return now.status();
    if (!*now)
      continue;
    isTold = true;
    if (absl::Status added = add(launcher, **now); !added.ok())
      return added;
  }
  for (const Launcher &launcher : incomplete) {
    if (isTold || found.isParallel)
      break;
    auto now = read(launcher);
    if (!now.ok())
      return now.status();
    if (*now && (*now)->size != 1)
      found = **now;
  }
  return found;
}
} // namespace

std::string Launch::asOne() const {
  return size == 0 ? "one of several" : absl::StrCat("one of ", size);
}

absl::StatusOr<Launch> detectLaunch(Environment environment) {
  return Detection(environment).run();
}

} // namespace meshwork::runtime
