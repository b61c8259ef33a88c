#include "runtime/comm/MeetingPlace.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Text/Escape.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
using Environment = absl::FunctionRef<const char *(const char *)>;
// Below those that systems give to connections.
constexpr uint32_t firstSlurmPort = 20000, numSlurmPorts = 12000;
/// Between the ports of a job's steps; jobs of the same time are close to each
/// other.
constexpr uint64_t apart = 7919;
constexpr size_t longestSecret = 4096;

absl::StatusOr<uint16_t> portOf(const char *name, const char *value,
                                uint32_t further = 0) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(value, &port) || port == 0 || port + further > 65535)
    return absl::InvalidArgumentError(
        absl::StrCat("the environment variable ", name, " is ", quote(value),
                     ", expected a port from 1 to ", 65535 - further));
  return static_cast<uint16_t>(port + further);
}

/// The first of "node[01-04,07],other".
std::string firstHost(const std::string &list) {
  size_t open = list.find('['), end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (open != end || open == std::string::npos)
    return host;
  std::string numbers = list.substr(open + 1);
  return host + numbers.substr(0, numbers.find_first_of("-,]"));
}

absl::StatusOr<std::string> secretIn(const std::string &path) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("MESHWORK_SECRET_FILE ", quote(path), ": ", why));
  };
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0)
    return bad("cannot be opened");
  struct stat about{};
  std::string text(longestSecret + 1, '\0');
  bool isOwn = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
               (about.st_mode & 077) == 0;
  ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  if (!isOwn)
    return bad("expected a file that its owner alone may read (mode 0600)");
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  absl::StripAsciiWhitespace(&text);
  if (text.empty() || text.size() > longestSecret)
    return bad(absl::StrCat("expected 1 to ", longestSecret, " bytes"));
  return text;
}

absl::Status readSecret(Environment environment, MeetingPlace &place) {
  if (const char *secret = environment("MESHWORK_SECRET"))
    place.secret = secret;
  else if (const char *path = environment("MESHWORK_SECRET_FILE"))
    MESHWORK_ASSIGN_OR_RETURN(place.secret, secretIn(path));
  if (place.secret && place.secret->empty())
    return absl::InvalidArgumentError("MESHWORK_SECRET is empty");
  return absl::OkStatus();
}

/// torchrun's own store listens at MASTER_PORT.
absl::Status readMaster(Environment environment, MeetingPlace &place) {
  const char *store = environment("TORCHELASTIC_USE_AGENT_STORE"),
             *port = environment("MASTER_PORT");
  bool isTaken = store && absl::EqualsIgnoreCase(store, "true");
  place.host = environment("MASTER_ADDR");
  if (absl::StrContains(place.host, ':') && place.host.front() != '[')
    place.host = "[" + place.host + "]";
  MESHWORK_ASSIGN_OR_RETURN(place.port,
                            portOf("MASTER_PORT", port, isTaken ? 1 : 0));
  return absl::OkStatus();
}

/// Slurm sorts its list. Rank 0 is elsewhere in a heterogeneous job, and where
/// -m arbitrary or a hostfile says so.
absl::Status readSlurm(Environment environment, MeetingPlace &place) {
  uint32_t job = 0, step = 0;
  for (auto [name, number] :
       {std::pair("SLURM_JOB_ID", &job), std::pair("SLURM_STEP_ID", &step)})
    if (const char *value = environment(name))
      (void)absl::SimpleAtoi(value, number);
  place.host = firstHost(environment("SLURM_STEP_NODELIST"));
  place.port = static_cast<uint16_t>(firstSlurmPort +
                                     (job + apart * step) % numSlurmPorts);
  const char *here = environment("SLURMD_NODENAME");
  if (place.rank == 0 && here && place.host != here)
    return absl::InvalidArgumentError(absl::StrCat(
        "srun put rank 0 on ", here, ", but the others look for it on ",
        place.host, ", the first host of SLURM_STEP_NODELIST: set MASTER_ADDR=",
        here, " and MASTER_PORT to a free port there"));
  return absl::OkStatus();
}
} // namespace

absl::StatusOr<std::optional<MeetingPlace>>
meetingPlace(const Launch &launch, Environment environment) {
  MeetingPlace place;
  place.rank = launch.rank;
  place.size = launch.size;
  if (environment("MASTER_ADDR") && environment("MASTER_PORT"))
    MESHWORK_RETURN_IF_ERROR(readMaster(environment, place));
  else if (environment("SLURM_STEP_NODELIST"))
    MESHWORK_RETURN_IF_ERROR(readSlurm(environment, place));
  if (launch.size < 2 || place.host.empty())
    return std::nullopt;
  if (place.host == "localhost") // of two addresses all take this one
    place.host = "127.0.0.1";
  if (const char *port = environment("MESHWORK_PORT"))
    MESHWORK_ASSIGN_OR_RETURN(place.port, portOf("MESHWORK_PORT", port));
  if (const char *supervisor = environment("MESHWORK_SUPERVISOR"))
    place.supervisor = supervisor;
  MESHWORK_RETURN_IF_ERROR(readSecret(environment, place));
  return place;
}

} // namespace meshwork::runtime
