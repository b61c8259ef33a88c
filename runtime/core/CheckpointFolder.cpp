#include "runtime/core/CheckpointFolder.h"
#include "absl/strings/str_join.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/io/Files.h"
#include <unistd.h>

namespace meshwork::runtime {
namespace {
std::string markOf(const std::string &folder, uint32_t rank) {
  return absl::StrCat(folder, "/.seen-by-rank-", rank);
}

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

absl::Status makeMark(const std::string &folder, uint32_t rank) {
  MESHWORK_RETURN_IF_ERROR(makeSaveFolder(folder));
  return writeWhole(markOf(folder, rank), hostName());
}

/// Those of `count` ranks whose files are not here.
std::vector<uint32_t> unseen(const std::string &folder, size_t count) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < count; ++rank)
    if (::access(markOf(folder, rank).c_str(), F_OK) != 0)
      ranks.push_back(rank);
  return ranks;
}

absl::Status cannot(const std::string &why) {
  return withExitCode(
      absl::FailedPreconditionError(absl::StrCat("--checkpoint: ", why)),
      ExitCode::cannotCreate);
}

/// All processes say "" or what is wrong; the first that is.
absl::Status agreeOn(const Processes &processes, const std::string &mine) {
  absl::StatusOr<std::vector<std::string>> all = processes.exchange(mine);
  MESHWORK_RETURN_IF_ERROR(all.status());
  for (const std::string &one : *all)
    if (!one.empty())
      return cannot(one);
  return absl::OkStatus();
}

/// "rank 3 (host b): ", where there are several.
std::string who(const Processes &processes) {
  return processes.areMany() ? absl::StrCat("rank ", processes.rank(),
                                            " (host ", hostName(), "): ")
                             : "";
}

absl::Status checkShared(const std::string &folder,
                         const Processes &processes) {
  absl::Status made = makeMark(folder, processes.rank());
  MESHWORK_RETURN_IF_ERROR(
      agreeOn(processes,
              made.ok() ? "" : absl::StrCat(who(processes), made.message())));
  std::vector<uint32_t> missing = unseen(folder, processes.count());
  return agreeOn(
      processes,
      missing.empty()
          ? ""
          : absl::StrCat(who(processes), quote(folder),
                         " lacks the files that ranks ",
                         absl::StrJoin(missing, ", "),
                         " have made there: give a folder that all hosts "
                         "share"));
}
} // namespace

absl::Status prepareCheckpoints(const RunOptions &options,
                                const Processes &processes) {
  if (options.checkpoint.empty())
    return absl::OkStatus();
  absl::Status status = checkShared(options.checkpoint, processes);
  ::unlink(markOf(options.checkpoint, processes.rank()).c_str());
  return status;
}

} // namespace meshwork::runtime
