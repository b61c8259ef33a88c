#include "runtime/core/CheckpointFolder.h"
#include "absl/strings/str_join.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/KeepNewest.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Names.h"
#include "runtime/io/Files.h"
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
std::string markOf(const std::string &folder, uint32_t rank) {
  return absl::StrCat(folder, "/.seen-by-rank-", rank);
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

/// Whether the options ask for a resume from a checkpoint of the folder.
bool resumesFromThere(const RunOptions &options) {
  namespace fs = std::filesystem;
  if (options.resume.empty() || options.resume == "auto")
    return !options.resume.empty();
  std::error_code error;
  fs::path from = fs::weakly_canonical(fs::absolute(options.resume), error),
           folder =
               fs::weakly_canonical(fs::absolute(options.checkpoint), error);
  return from == folder || from.parent_path() == folder;
}

absl::Status checkUnused(const RunOptions &options) {
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(options.checkpoint);
  if (!found.ok() || found->complete.empty() || resumesFromThere(options))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--checkpoint: ", quote(found->complete.front().path),
      " is of another run: give another folder, or go on from there with "
      "--resume auto"));
}

absl::StatusOr<FileDescriptor> lockFolder(const std::string &path) {
  FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A file system that knows no locks is used without.
  if (folder.get() >= 0 && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK)
    return cannot(absl::StrCat("another run writes checkpoints to ",
                               quote(path), ": give another folder"));
  return folder;
}
} // namespace

absl::StatusOr<FileDescriptor> prepareCheckpoints(const RunOptions &options,
                                                  const Processes &processes) {
  const std::string &path = options.checkpoint;
  FileDescriptor lock;
  if (path.empty())
    return lock;
  absl::Status shared = checkShared(path, processes);
  ::unlink(markOf(path, processes.rank()).c_str());
  MESHWORK_RETURN_IF_ERROR(shared);
  MESHWORK_RETURN_IF_ERROR(checkUnused(options));
  if (!processes.isFirst())
    return lock;
  MESHWORK_ASSIGN_OR_RETURN(lock, lockFolder(path));
  removeIncomplete(path);
  return lock;
}

} // namespace meshwork::runtime
