#include "runtime/io/Files.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {

// A single pread or write moves less than 2 GiB on Linux.
constexpr uint64_t maxTransferBytes = uint64_t{1} << 30;

} // namespace

absl::Status openError(const std::string &path, int code) {
  std::string text =
      absl::StrCat(quote(path), ": cannot open: ", std::strerror(code));
  if (code == ENOENT || code == ENOTDIR || code == EACCES || code == EPERM)
    return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

const char *kindOfFile(mode_t mode) {
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

FileDescriptor::FileDescriptor(FileDescriptor &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)) {}

FileDescriptor &FileDescriptor::operator=(FileDescriptor &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

/// Advances `from` by what was written, until nothing is left or a write fails.
static bool writeFrom(int descriptor, const char *&from, const char *end) {
  while (from < end) {
    ssize_t put =
        ::write(descriptor, from,
                std::min(static_cast<uint64_t>(end - from), maxTransferBytes));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return false;
    from += put;
  }
  return true;
}

bool FileDescriptor::writeAll(const void *from, uint64_t bytes) const {
  const char *next = static_cast<const char *>(from);
  return writeFrom(descriptor, next, next + bytes);
}

bool FileDescriptor::setDirect(bool isDirect) const {
  int flags = fcntl(descriptor, F_GETFL);
  flags = isDirect ? flags | O_DIRECT : flags & ~O_DIRECT;
  return fcntl(descriptor, F_SETFL, flags) == 0;
}

// Who refuses says so with EINVAL, some at the flag and some at the write; a
// write that ended within a block leaves a place that is refused too.
bool FileDescriptor::writeAllPastCache(const void *from, uint64_t bytes) const {
  const char *next = static_cast<const char *>(from), *end = next + bytes;
  if (setDirect(true)) {
    bool isGood = writeFrom(descriptor, next, end - bytes % directBytes);
    int why = errno;
    setDirect(false);
    errno = why;
    if (!isGood && why != EINVAL)
      return false;
  }
  return writeFrom(descriptor, next, end);
}

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
  return fromDescriptor(FileDescriptor(descriptor), path);
}

absl::StatusOr<InputFile> InputFile::fromDescriptor(FileDescriptor descriptor,
                                                    std::string path) {
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0)
    return openError(path, errno);
  if (!S_ISREG(status.st_mode))
    return absl::DataLossError(absl::StrCat(quote(path), ": is ",
                                            kindOfFile(status.st_mode),
                                            ", expected a regular file"));
  InputFile file;
  file.descriptor = std::move(descriptor);
  file.name = std::move(path);
  file.sizeBytes = static_cast<uint64_t>(status.st_size);
  return file;
}

void InputFile::goPastCache() const { (void)descriptor.setDirect(true); }

// What ends early or is refused is read once more through the cache, and told
// of there; all reads after it go that way too.
absl::Status InputFile::readPastCache(uint64_t offset, void *to,
                                      uint64_t bytes) const {
  uint64_t whole = (bytes + directBytes - 1) / directBytes * directBytes;
  ssize_t got = pread(descriptor.get(), to, whole, static_cast<off_t>(offset));
  if (got >= 0 && static_cast<uint64_t>(got) >= bytes)
    return absl::OkStatus();
  (void)descriptor.setDirect(false);
  return readAt(offset, to, bytes);
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

std::optional<FileKind> kindOf(const InputFile &file) {
  std::string start(std::min(file.size(), kindBytes), '\0');
  if (!file.readAt(0, start.data(), start.size()).ok())
    return std::nullopt;
  return meshwork::kindOf(start, file.size());
}

} // namespace meshwork::runtime
