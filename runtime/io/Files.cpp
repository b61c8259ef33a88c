#include "runtime/io/Files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// SHA-1 of git or SHA-256, in hex.
bool isHash(std::string_view name) {
  return (name.size() == 40 || name.size() == 64) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The hash in ../../blobs/HASH, to which `name` in `folder` links; else "".
std::string blobOf(const FileDescriptor &folder, const std::string &name) {
  constexpr std::string_view blobs = "../../blobs/";
  char link[128];
  ssize_t size = readlinkat(folder.get(), name.c_str(), link, sizeof(link));
  std::string_view text(link, size < 0 ? 0 : static_cast<size_t>(size));
  if (!text.starts_with(blobs) || !isHash(text.substr(blobs.size())))
    return "";
  return std::string(text.substr(blobs.size()));
}

/// Whether the folder is .../snapshots/COMMIT, as in the Hub's cache.
bool isSnapshot(const std::string &folder) {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::canonical(folder, failed);
  return !failed && path.parent_path().filename() == "snapshots";
}

} // namespace

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
  constexpr int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  int descriptor = openat(base.get(), name.c_str(), flags);
  bool isLink = descriptor < 0 && errno == ELOOP;
  std::string blob =
      isLink && isSnapshot(folder) ? blobOf(base, name) : std::string();
  if (!blob.empty()) {
    // By the text that was checked; the link itself is never followed.
    FileDescriptor blobs(openat(base.get(), "../../blobs",
                                O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (blobs.get() >= 0)
      descriptor = openat(blobs.get(), blob.c_str(), flags);
    isLink = descriptor < 0 && errno == ELOOP;
  }
  if (isLink)
    return absl::DataLossError(absl::StrCat(
        quote(path), ": is a symbolic link; only regular files of the folder "
                     "itself are read (and ../../blobs/HASH from a snapshot in "
                     "the cache of the Hugging Face Hub), put a copy there"));
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
                                            kindOfFile(status.st_mode),
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

} // namespace meshwork::runtime
