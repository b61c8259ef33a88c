#include "runtime/io/OutputFolder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

#include "runtime/io/NewFile.h"

namespace meshwork::runtime {
namespace {

absl::Status cannotCreate(const std::string &path, const std::string &why) {
  return absl::FailedPreconditionError(absl::StrCat(quote(path), ": ", why));
}

/// As one that mkdir would make; mkdtemp's is for its owner alone.
bool setRights(const std::string &folder) {
  mode_t mask = umask(0);
  umask(mask);
  return chmod(folder.c_str(), 0777 & ~mask) == 0;
}

/// Behind the target's name; six letters and digits follow.
constexpr char partial[] = ".partial-";

/// Locked until it is closed, or its process has died; none when another one
/// holds the lock, or the file system knows no locks.
FileDescriptor lockedFolder(const std::string &path) {
  FileDescriptor folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder.get() >= 0 && flock(folder.get(), LOCK_EX | LOCK_NB) == 0
             ? std::move(folder)
             : FileDescriptor();
}

/// What processes that were killed have left of `target`.
void removeLeft(const std::string &target) {
  std::string folder = folderOf(target),
              begin =
                  std::filesystem::path(target).filename().string() + partial;
  std::error_code error;
  for (const std::string &name : namesOfNewFiles(folder, begin)) {
    std::string path = absl::StrCat(folder, "/", name);
    if (FileDescriptor mine = lockedFolder(path); mine.get() >= 0)
      std::filesystem::remove_all(path, error);
  }
}

} // namespace

absl::Status OutputFolder::make() {
  std::string made = absl::StrCat(target, partial, "XXXXXX");
  if (!mkdtemp(made.data()))
    return cannotCreate(target, absl::StrCat("cannot create a folder in ",
                                             quote(folderOf(target)), ": ",
                                             std::strerror(errno)));
  temporary = made;
  // Who begins with the same target just now may remove it before that. Only
  // one of the two could have been renamed.
  lock = lockedFolder(made);
  if (!setRights(made))
    return cannotCreate(target,
                        absl::StrCat("cannot set the mode of the folder: ",
                                     std::strerror(errno)));
  return absl::OkStatus();
}

absl::StatusOr<OutputFolder> OutputFolder::create(const std::string &path) {
  if (path.empty())
    return cannotCreate(path, "is no name for a folder");
  std::error_code failed;
  OutputFolder folder;
  absl::StatusOr<std::string> target = outputTarget(path);
  if (!target.ok())
    return target.status();
  folder.target = *target;
  while (folder.target.size() > 1 && folder.target.back() == '/')
    folder.target.pop_back();
  if (std::filesystem::exists(folder.target, failed) &&
      !(std::filesystem::is_directory(folder.target, failed) &&
        std::filesystem::is_empty(folder.target, failed)))
    return cannotCreate(path,
                        "is there and not empty; expected no folder or an "
                        "empty one, name another");
  removeLeft(folder.target);
  absl::Status made = folder.make();
  return made.ok() ? absl::StatusOr<OutputFolder>(std::move(folder)) : made;
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : lock(std::move(other.lock)), target(std::move(other.target)),
      temporary(std::exchange(other.temporary, std::string())) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary.empty())
    std::filesystem::remove_all(temporary, ignored);
}

absl::Status OutputFolder::commit() {
  auto failed = [&](const char *what) {
    return absl::UnavailableError(
        absl::StrCat(quote(target), ": cannot ", what,
                     " the folder: ", std::strerror(errno)));
  };
  if (!syncFolder(temporary))
    return failed("sync");
  // An empty folder of that name is replaced, a full one is not.
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return failed("rename");
  temporary.clear();
  return syncFolder(folderOf(target)) ? absl::OkStatus()
                                      : failed("sync what holds");
}

} // namespace meshwork::runtime
