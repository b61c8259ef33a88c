#include "runtime/checkpoint/SaveFolder.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/io/Files.h"
#include <absl/strings/str_cat.h>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace meshwork::runtime {

absl::Status makeSaveFolder(const std::string &path) {
  struct stat found;
  if (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))
    return absl::OkStatus();
  std::string parent = folderOf(path);
  if (parent != "." && parent != "/")
    MESHWORK_RETURN_IF_ERROR(makeSaveFolder(parent));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(path), ": cannot create the folder: ", std::strerror(errno)));
  if (::stat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))
    return absl::FailedPreconditionError(
        absl::StrCat(quote(path), ": is no folder, expected one"));
  if (!syncFolder(parent))
    return absl::UnavailableError(absl::StrCat(
        quote(parent), ": cannot sync the folder: ", std::strerror(errno)));
  return absl::OkStatus();
}

bool isLink(const std::string &path) {
  struct stat found;
  return ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
}

absl::Status makeCheckpointFolder(const std::string &path) {
  if (isLink(path))
    return absl::FailedPreconditionError(absl::StrCat(
        quote(path), ": is a symbolic link, expected a folder or nothing: "
                     "move it away, or give another --checkpoint"));
  return makeSaveFolder(path);
}

void removeSave(const std::string &folder,
                const std::vector<std::string> &files) {
  if (isLink(folder))
    return;
  for (const std::string &name : files)
    if (!name.empty())
      ::unlink(absl::StrCat(folder, "/", name).c_str());
  ::rmdir(folder.c_str());
}

} // namespace meshwork::runtime
