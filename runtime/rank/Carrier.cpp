#include "runtime/rank/Carrier.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/comm/Address.h"
#include "runtime/comm/Interfaces.h"
#include "runtime/comm/MeetingPlace.h"
#include "runtime/comm/MpiMessages.h"
#include "runtime/comm/SocketMessages.h"
#include "runtime/comm/World.h"
#include <cstdlib>
#include <optional>

namespace meshwork::runtime {
namespace {
const char *environment(const char *name) { return std::getenv(name); }

absl::Status config(const absl::Status &why) {
  return withExitCode(absl::FailedPreconditionError(why.message()),
                      ExitCode::config);
}

/// Where all ranks are on one host, variables for other libraries do not make
/// its ports seen by others.
absl::Status chooseInterface(const RunOptions &options, MeetingPlace &place) {
  if (!isLoopback(place.host)) {
    MESHWORK_ASSIGN_OR_RETURN(place.own,
                              interfaceAddress(options.interface, environment));
    return absl::OkStatus();
  }
  if (options.interface.empty())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--interface would do nothing: ranks meet at ", place.host,
      ", which is this host alone; set MASTER_ADDR to an address of rank 0's "
      "host that other hosts reach, or leave --interface out"));
}

absl::StatusOr<Messages *>
bySockets(MeetingPlace place, const RunOptions &options, std::string &warning) {
  if (absl::Status chosen = chooseInterface(options, place); !chosen.ok())
    return config(chosen);
  if (!place.secret && !isLoopback(place.host))
    warning = "ranks send to each other in the clear, and whoever reaches "
              "their ports may disturb them: set MESHWORK_SECRET_FILE to a "
              "file that only you can read, the same on all hosts";
  auto carrier = SocketMessages::start(place, options.timeoutSeconds);
  return absl::IsInvalidArgument(carrier.status()) ? config(carrier.status())
                                                   : carrier;
}

absl::Status noWay(const Launch &launch, bool byMpi) {
  return absl::InvalidArgumentError(absl::StrCat(
      launch.source, " started this process as ", launch.asOne(),
      ", but not so that processes of Open MPI find each other, and each would "
      "train all ranks: ",
      byMpi ? "leave out --transport mpi where MASTER_ADDR and MASTER_PORT are "
              "set; "
            : "set MASTER_ADDR and MASTER_PORT to the host of rank 0 and a "
              "free port of it; ",
      "or start them with the mpirun of Open MPI, or with srun --mpi=pmix; or "
      "start one process, with --transport threads"));
}
} // namespace

absl::Status refuseInterface(const RunOptions &options) {
  if (options.interface.empty())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--interface is for ranks that are processes and meet without MPI, by "
      "MASTER_ADDR or the variables of srun: leave it out here");
}

absl::StatusOr<Messages *> carrierOf(const Launch &launch,
                                     const RunOptions &options,
                                     std::string &warning) {
  bool byMpi = options.transport == RunOptions::Transport::mpi;
  std::optional<MeetingPlace> place;
  if (launch.isParallel && !byMpi &&
      (!launch.hasManager || launch.isOldManager)) {
    auto found = meetingPlace(launch, environment);
    if (!found.ok())
      return config(found.status());
    place = *std::move(found);
  }
  if (place)
    return bySockets(*place, options, warning);
  if (launch.isParallel && !launch.hasManager)
    return config(noWay(launch, byMpi));
  MESHWORK_RETURN_IF_ERROR(refuseInterface(options));
  return MpiMessages::start(World::numLanes);
}

} // namespace meshwork::runtime
