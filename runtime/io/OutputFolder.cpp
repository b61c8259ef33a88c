#include "runtime/io/OutputFolder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

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

} // namespace

absl::StatusOr<OutputFolder> OutputFolder::create(const std::string &path) {
  std::error_code failed;
  OutputFolder folder;
  folder.target = linkTarget(path);
  while (folder.target.size() > 1 && folder.target.back() == '/')
    folder.target.pop_back();
  if (std::filesystem::exists(folder.target, failed) &&
      !(std::filesystem::is_directory(folder.target, failed) &&
        std::filesystem::is_empty(folder.target, failed)))
    return cannotCreate(path,
                        "is there and not empty; expected no folder or an "
                        "empty one, name another");
  std::string temporary = absl::StrCat(folder.target, ".XXXXXX");
  if (!mkdtemp(temporary.data()))
    return cannotCreate(path, absl::StrCat("cannot create a folder in ",
                                           quote(folderOf(folder.target)), ": ",
                                           std::strerror(errno)));
  folder.temporary = temporary;
  if (!setRights(temporary))
    return cannotCreate(path,
                        absl::StrCat("cannot set the mode of the folder: ",
                                     std::strerror(errno)));
  return folder;
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : target(std::move(other.target)),
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
