#include "runtime/io/Files.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

#include "runtime/io/NewFile.h"

namespace meshwork::runtime {
namespace {

/// The rights of the file that is replaced, or those that a new one gets.
bool setRights(const FileDescriptor &file,
               const std::optional<struct stat> &old) {
  if (!old)
    return setModeOfNew(file);
  mode_t mode = old->st_mode & 0777;
  // Where the group cannot be kept, another one gets no rights.
  if (fchown(file.get(), old->st_uid, old->st_gid) != 0 &&
      fchown(file.get(), static_cast<uid_t>(-1), old->st_gid) != 0)
    mode &= ~static_cast<mode_t>(070);
  return fchmod(file.get(), mode) == 0;
}

absl::Status cannotCreate(const std::string &path) {
  return absl::FailedPreconditionError(
      absl::StrCat(quote(path), ": cannot create a file in folder ",
                   quote(folderOf(path)), ": ", std::strerror(errno)));
}

absl::Status notRegular(const std::string &path, mode_t mode) {
  return absl::FailedPreconditionError(
      absl::StrCat(quote(path), ": is ", kindOfFile(mode),
                   ", expected a regular file or no file"));
}

/// `old` gets the file that is replaced, if there is one; a link is not one.
absl::Status findReplaced(const std::string &path, const FileDescriptor &folder,
                          const std::string &name,
                          std::optional<struct stat> &old) {
  struct stat found;
  if (fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? absl::OkStatus() : cannotCreate(path);
  if (S_ISLNK(found.st_mode))
    return absl::OkStatus();
  if (!S_ISREG(found.st_mode))
    return notRegular(path, found.st_mode);
  // A rename asks for the folder's permission only.
  if (faccessat(folder.get(), name.c_str(), W_OK, AT_EACCESS) != 0)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(path), ": may not be written: ", std::strerror(errno)));
  old = found;
  return absl::OkStatus();
}

FileDescriptor openFolder(const std::string &path, int more = 0) {
  return FileDescriptor(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | more));
}

absl::Status writeAndCommit(absl::StatusOr<OutputFile> file,
                            std::string_view contents) {
  if (!file.ok())
    return file.status();
  absl::Status status = file->write(contents.data(), contents.size());
  return status.ok() ? file->commit() : status;
}

} // namespace

absl::StatusOr<OutputFile> OutputFile::create(const std::string &path,
                                              OutputLink link) {
  if (link == OutputLink::replaced)
    return createAt(path, openFolder(folderOf(path)));
  struct stat found;
  // What /dev/stdout leads to may have no name: it is asked before links are.
  if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    return notRegular(path, found.st_mode);
  absl::StatusOr<std::string> target = outputTarget(path);
  return target.ok() ? createAt(*target, openFolder(folderOf(*target)))
                     : target.status();
}

absl::StatusOr<OutputFile> OutputFile::createInFolder(const std::string &folder,
                                                      const std::string &name) {
  return createAt(absl::StrCat(folder, "/", name),
                  openFolder(folder, O_NOFOLLOW));
}

absl::StatusOr<OutputFile> OutputFile::createAt(const std::string &path,
                                                FileDescriptor folder) {
  OutputFile file;
  file.path = path;
  file.name = path.substr(path.rfind('/') + 1);
  if (folder.get() < 0)
    return cannotCreate(path);
  file.folder = std::move(folder);
  std::optional<struct stat> old;
  if (absl::Status status = findReplaced(path, file.folder, file.name, old);
      !status.ok())
    return status;
  file.descriptor = createNewFile(file.folder, file.name + ".", file.temporary);
  if (file.descriptor.get() < 0) {
    file.temporary.clear();
    return cannotCreate(path);
  }
  if (!setRights(file.descriptor, old))
    return file.failed("set the mode of");
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : folder(std::move(other.folder)), descriptor(std::move(other.descriptor)),
      path(std::move(other.path)), name(std::move(other.name)),
      temporary(std::exchange(other.temporary, std::string())) {}

OutputFile::~OutputFile() {
  if (!temporary.empty())
    unlinkat(folder.get(), temporary.c_str(), 0);
}

absl::Status OutputFile::failed(const char *what) const {
  return absl::UnavailableError(absl::StrCat(
      quote(path), ": cannot ", what, " the file: ", std::strerror(errno)));
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
  if (renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) !=
      0)
    return failed("rename");
  temporary.clear();
  // The rename itself is durable only once the folder is.
  return fsync(folder.get()) == 0 ? absl::OkStatus()
                                  : failed("sync the folder of");
}

bool syncFolder(const std::string &path) {
  FileDescriptor folder = openFolder(path);
  return folder.get() >= 0 && fsync(folder.get()) == 0;
}

absl::Status writeWhole(const std::string &path, std::string_view contents,
                        OutputLink link) {
  return writeAndCommit(OutputFile::create(path, link), contents);
}

absl::Status writeWholeInFolder(const std::string &folder,
                                const std::string &name,
                                std::string_view contents) {
  return writeAndCommit(OutputFile::createInFolder(folder, name), contents);
}

} // namespace meshwork::runtime
