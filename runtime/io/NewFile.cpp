#include "runtime/io/NewFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {

constexpr int maxLinks = 40; // as the kernel
constexpr int maxTries = 100;
constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Empty (and errno) where the system has no random bytes.
std::string randomLetters() {
  unsigned char bytes[randomEnding];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
    return "";
  std::string text;
  for (unsigned char byte : bytes)
    text += letters[byte % letters.size()];
  return text;
}

bool isRandom(std::string_view ending) {
  return ending.size() == randomEnding &&
         ending.find_first_not_of(letters) == std::string_view::npos;
}

/// In a folder like /tmp anybody may put a link under any name.
absl::Status checkOwner(const std::filesystem::path &link) {
  struct stat folder, status;
  if (stat(folderOf(link.string()).c_str(), &folder) != 0 ||
      lstat(link.c_str(), &status) != 0)
    return absl::OkStatus(); // whoever opens it tells
  constexpr mode_t everybodys = S_ISVTX | S_IWOTH;
  if ((folder.st_mode & everybodys) != everybodys ||
      status.st_uid == geteuid() || status.st_uid == folder.st_uid)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      quote(link.string()), ": is a symbolic link that user ", status.st_uid,
      " has put into a folder that everybody may write to, it is not followed: "
      "give the file's own name, or one in another folder"));
}

} // namespace

FileDescriptor createNewFile(const FileDescriptor &folder,
                             std::string_view begin, std::string &name) {
  for (int i = 0; i < maxTries; ++i) {
    std::string ending = randomLetters();
    if (ending.empty())
      return FileDescriptor();
    name = std::string(begin) + ending;
    int descriptor =
        openat(folder.get(), name.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor >= 0 || errno != EEXIST)
      return FileDescriptor(descriptor);
  }
  return FileDescriptor();
}

std::vector<std::string> namesOfNewFiles(const std::string &folder,
                                         std::string_view begin) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename();
    if (name.starts_with(begin) &&
        isRandom(std::string_view(name).substr(begin.size())))
      names.push_back(std::move(name));
  }
  return names;
}

bool setModeOfNew(const FileDescriptor &file) {
  mode_t mask = umask(0);
  umask(mask);
  return fchmod(file.get(), 0666 & ~mask) == 0;
}

absl::StatusOr<std::string> outputTarget(const std::string &path) {
  std::filesystem::path end = path;
  for (int links = 0; links < maxLinks; ++links) {
    std::error_code noLink;
    std::filesystem::path next = std::filesystem::read_symlink(end, noLink);
    if (noLink)
      return end.string();
    if (absl::Status owned = checkOwner(end); !owned.ok())
      return owned;
    end = end.parent_path() / next; // `next` alone where it is absolute
  }
  return absl::FailedPreconditionError(
      absl::StrCat(quote(path), ": cannot be written: ", std::strerror(ELOOP)));
}

} // namespace meshwork::runtime
