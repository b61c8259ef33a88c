#include "runtime/save/CheckpointFolder.h"
#include "lib/Plan/Checked.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/KeepNewest.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/io/Files.h"
#include "runtime/save/CheckpointMarks.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
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

/// Of the first process: the lock, or nothing on a file system that knows none;
/// `why` gets what is wrong.
FileDescriptor lockFolder(const std::string &path, std::string &why) {
  FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0)
    why = absl::StrCat(quote(path), ": cannot be read: ", std::strerror(errno));
  else if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0)
    return folder;
  else if (errno == EWOULDBLOCK)
    why = absl::StrCat("another run writes checkpoints to ", quote(path),
                       ": give another folder");
  return FileDescriptor();
}

/// Before anything is made in the folder: what another run has there is its
/// own.
absl::StatusOr<FileDescriptor> makeAndLock(const std::string &path,
                                           const Processes &processes) {
  FileDescriptor lock;
  std::string wrong;
  if (absl::Status made = makeSaveFolder(path); !made.ok())
    wrong = absl::StrCat(whoIs(processes), made.message());
  else if (processes.isFirst())
    lock = lockFolder(path, wrong);
  if (lock.get() >= 0)
    removeMarksLeft(path);
  MESHWORK_RETURN_IF_ERROR(agreeOnCheckpoint(processes, wrong));
  return lock;
}
} // namespace

absl::StatusOr<FileDescriptor> prepareCheckpoints(const RunOptions &options,
                                                  const Processes &processes) {
  const std::string &path = options.checkpoint;
  FileDescriptor lock;
  if (path.empty())
    return lock;
  MESHWORK_ASSIGN_OR_RETURN(lock, makeAndLock(path, processes));
  MESHWORK_RETURN_IF_ERROR(checkShared(path, processes));
  MESHWORK_RETURN_IF_ERROR(checkUnused(options));
  if (processes.isFirst())
    removeIncomplete(path);
  return lock;
}

} // namespace meshwork::runtime
