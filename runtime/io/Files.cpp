#include "runtime/io/Files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {

// A single pread or write moves less than 2 GiB on Linux.
constexpr uint64_t maxTransferBytes = uint64_t{1} << 30;

absl::Status openError(const std::string &path, int code) {
  std::string text =
      absl::StrCat(quote(path), ": cannot open: ", std::strerror(code));
  if (code == ENOENT || code == ENOTDIR || code == EACCES || code == EPERM)
    return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

const char *kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a folder";
  if (S_ISFIFO(mode))
    return "a pipe";
  if (S_ISSOCK(mode))
    return "a socket";
  return "a device";
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

std::string quote(std::string_view name) {
  constexpr size_t shown = 120;
  bool cut = name.size() > shown;
  return absl::StrCat("\"",
                      absl::CHexEscape(std::string(name.substr(0, shown))),
                      cut ? "...\"" : "\"");
}

FileDescriptor::FileDescriptor(FileDescriptor &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)) {}

FileDescriptor &FileDescriptor::operator=(FileDescriptor &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

bool FileDescriptor::close() {
  int open = std::exchange(descriptor, -1);
  return open < 0 || ::close(open) == 0;
}

absl::StatusOr<InputFile> InputFile::open(const std::string &path) {
  if (path.find('\0') != std::string::npos)
    return absl::NotFoundError(
        absl::StrCat(quote(path), ": a path cannot hold a zero byte"));
  // O_NONBLOCK: opening a pipe nobody writes to must not wait.
  int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0)
    return openError(path, errno);
  return fromDescriptor(FileDescriptor(descriptor), path, false);
}

// A plain name cannot leave the folder, and O_NOFOLLOW refuses a link; together
// they give what openat2 with RESOLVE_BENEATH would, on every kernel.
absl::StatusOr<InputFile> InputFile::openInFolder(const std::string &folder,
                                                  const std::string &name) {
  std::string path = absl::StrCat(folder, "/", name);
  if (name.empty() || name == "." || name == ".." || name.size() > NAME_MAX ||
      name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    return absl::DataLossError(absl::StrCat(
        quote(name), ": expected a plain file name in folder ", quote(folder),
        ", without '/', at most ", NAME_MAX, " bytes"));
  FileDescriptor base(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (base.get() < 0)
    return openError(folder, errno);
  int descriptor =
      openat(base.get(), name.c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (descriptor < 0 && errno == ELOOP)
    return absl::DataLossError(absl::StrCat(
        quote(path), ": is a symbolic link; only regular files of the folder "
                     "itself are read, put a copy there"));
  if (descriptor < 0)
    return openError(path, errno);
  return fromDescriptor(FileDescriptor(descriptor), path, true);
}

absl::StatusOr<InputFile> InputFile::fromDescriptor(FileDescriptor descriptor,
                                                    std::string path,
                                                    bool refuseHardLinks) {
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0)
    return openError(path, errno);
  if (!S_ISREG(status.st_mode))
    return absl::DataLossError(absl::StrCat(quote(path), ": is ",
                                            kindOf(status.st_mode),
                                            ", expected a regular file"));
  if (refuseHardLinks && status.st_nlink > 1)
    return absl::DataLossError(absl::StrCat(
        quote(path), ": has ", status.st_nlink,
        " hard links, expected 1: its bytes may belong to another folder, "
        "put a copy there"));
  InputFile file;
  file.descriptor = std::move(descriptor);
  file.name = std::move(path);
  file.sizeBytes = static_cast<uint64_t>(status.st_size);
  return file;
}

absl::Status InputFile::readAt(uint64_t offset, void *to,
                               uint64_t bytes) const {
  char *next = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t got =
        pread(descriptor.get(), next, std::min(bytes, maxTransferBytes),
              static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return absl::UnavailableError(
          absl::StrCat(quote(name), ": cannot read ", bytes, " bytes at byte ",
                       offset, ": ", std::strerror(errno)));
    if (got == 0)
      return absl::DataLossError(absl::StrCat(
          quote(name), ": ends at byte ", offset, ", ", bytes,
          " bytes early; it had ", sizeBytes, " bytes when it was opened"));
    next += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile file;
  file.target = path;
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    // Renaming over a device, or over the name of a link, would destroy it.
    if (!S_ISREG(status.st_mode))
      return absl::FailedPreconditionError(
          absl::StrCat(quote(path), ": is ", kindOf(status.st_mode),
                       ", expected a regular file or no file"));
    if (char *resolved = realpath(path.c_str(), nullptr)) {
      file.target = resolved;
      std::free(resolved);
    }
  }
  std::string temporary = absl::StrCat(file.target, ".XXXXXX");
  int descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0)
    return absl::FailedPreconditionError(
        absl::StrCat(quote(path), ": cannot create a file in folder ",
                     quote(folderOf(file.target)), ": ", std::strerror(errno)));
  file.descriptor = FileDescriptor(descriptor);
  file.temporary = temporary;
  mode_t mask = umask(0); // mkostemp gives 0600; others may read what we write
  umask(mask);
  if (fchmod(descriptor, 0666 & ~mask) != 0)
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
  const char *next = static_cast<const char *>(from);
  while (bytes > 0) {
    ssize_t put =
        ::write(descriptor.get(), next, std::min(bytes, maxTransferBytes));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return failed("write");
    next += put;
    bytes -= static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::commit() {
  if (fsync(descriptor.get()) != 0 || !descriptor.close())
    return failed("sync");
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return failed("rename");
  temporary.clear();
  // The rename itself is durable only once the folder is.
  FileDescriptor folder(
      ::open(folderOf(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0)
    return failed("sync the folder of");
  return absl::OkStatus();
}

} // namespace meshwork::runtime
