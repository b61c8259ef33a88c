#include "runtime/io/Files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {

constexpr int maxLinks = 40; // as the kernel

/// The rights of the file that is replaced, or those that a new one gets.
bool setRights(int descriptor, const std::optional<struct stat> &old) {
  if (!old) { // mkostemp gives 0600
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(descriptor, 0666 & ~mask) == 0;
  }
  mode_t mode = old->st_mode & 0777;
  // Where the group cannot be kept, another one gets no rights.
  if (fchown(descriptor, old->st_uid, old->st_gid) != 0 &&
      fchown(descriptor, static_cast<uid_t>(-1), old->st_gid) != 0)
    mode &= ~static_cast<mode_t>(070);
  return fchmod(descriptor, mode) == 0;
}

} // namespace

std::string linkTarget(const std::string &path) {
  std::filesystem::path end = path;
  for (int links = 0; links < maxLinks; ++links) {
    std::error_code noLink;
    std::filesystem::path next = std::filesystem::read_symlink(end, noLink);
    if (noLink)
      break;
    end = end.parent_path() / next; // `next` alone where it is absolute
  }
  return end.string();
}

/// `old` gets the file that is replaced, if there is one.
static absl::Status findReplaced(const std::string &target,
                                 std::optional<struct stat> &old) {
  struct stat found;
  if (stat(target.c_str(), &found) != 0)
    return errno == ENOENT
               ? absl::OkStatus()
               : absl::FailedPreconditionError(absl::StrCat(
                     quote(target),
                     ": cannot be written: ", std::strerror(errno)));
  if (!S_ISREG(found.st_mode))
    return absl::FailedPreconditionError(
        absl::StrCat(quote(target), ": is ", kindOfFile(found.st_mode),
                     ", expected a regular file or no file"));
  // A rename asks for the folder's permission only.
  if (faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(target), ": may not be written: ", std::strerror(errno)));
  old = found;
  return absl::OkStatus();
}

absl::StatusOr<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile file;
  file.target =
      linkTarget(path); // A rename over a link would replace the link.
  std::optional<struct stat> old;
  if (absl::Status status = findReplaced(file.target, old); !status.ok())
    return status;
  std::string temporary = absl::StrCat(file.target, ".XXXXXX");
  int descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0)
    return absl::FailedPreconditionError(
        absl::StrCat(quote(path), ": cannot create a file in folder ",
                     quote(folderOf(file.target)), ": ", std::strerror(errno)));
  file.descriptor = FileDescriptor(descriptor);
  file.temporary = temporary;
  if (!setRights(descriptor, old))
    return file.failed("set the mode of");
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : descriptor(std::move(other.descriptor)), target(std::move(other.target)),
      temporary(std::exchange(other.temporary, std::string())) {}

OutputFile::~OutputFile() {
  if (!temporary.empty())
    unlink(temporary.c_str());
}

absl::Status OutputFile::failed(const char *what) const {
  return absl::UnavailableError(absl::StrCat(
      quote(target), ": cannot ", what, " the file: ", std::strerror(errno)));
}

absl::Status OutputFile::write(const void *from, uint64_t bytes) {
  return descriptor.writeAll(from, bytes) ? absl::OkStatus() : failed("write");
}

absl::Status OutputFile::writePastCache(const void *from, uint64_t bytes) {
  return descriptor.writeAllPastCache(from, bytes) ? absl::OkStatus()
                                                   : failed("write");
}

absl::Status OutputFile::commit() {
  if (fsync(descriptor.get()) != 0 || !descriptor.close())
    return failed("sync");
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return failed("rename");
  temporary.clear();
  // The rename itself is durable only once the folder is.
  return syncFolder(folderOf(target)) ? absl::OkStatus()
                                      : failed("sync the folder of");
}

bool syncFolder(const std::string &path) {
  FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && fsync(folder.get()) == 0;
}

absl::Status writeWhole(const std::string &path, std::string_view contents) {
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.status();
  if (absl::Status status = file->write(contents.data(), contents.size());
      !status.ok())
    return status;
  return file->commit();
}

} // namespace meshwork::runtime
