// A file that an untrusted file named: a plain name cannot leave its folder,
// so only links can. What a link leads to is opened as a place first, which
// touches nothing, and is judged by where the kernel says that place is.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

#include "runtime/io/Files.h"

namespace meshwork::runtime {
namespace {
namespace fs = std::filesystem;

/// Hard links are looked for among so many files; who has more copies them.
constexpr int mostEntries = 10000;

bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.size() <= NAME_MAX && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

/// SHA-1 of git or SHA-256, in hex.
bool isHash(std::string_view name) {
  return (name.size() == 40 || name.size() == 64) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string selfLink(const FileDescriptor &place) {
  return absl::StrCat("/proc/self/fd/", place.get());
}

/// Empty where /proc does not tell.
fs::path pathOf(const FileDescriptor &place) {
  std::error_code failed;
  fs::path path = fs::read_symlink(selfLink(place), failed);
  return failed ? fs::path() : path;
}

bool isBeneath(const fs::path &path, const fs::path &folder) {
  return !folder.empty() && path.native().starts_with(
                                folder.native() + (folder == "/" ? "" : "/"));
}

/// The repository in the Hub's cache that `folder` is, or lies in, a snapshot
/// of: REPOSITORY/snapshots/COMMIT. Else empty.
fs::path repositoryOf(const fs::path &folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path())
    if (at.parent_path().filename() == "snapshots")
      return at.parent_path().parent_path();
  return {};
}

/// Whether `target` is a file that `folder` may give: its own, or a blob of its
/// repository. Both paths are the kernel's.
bool staysInTree(const fs::path &target, const fs::path &folder) {
  if (isBeneath(target, folder))
    return true;
  fs::path repository = repositoryOf(folder);
  return !repository.empty() && target.parent_path() == repository / "blobs" &&
         isHash(target.filename().native());
}

/// How many names in `folder` are the file of `of`.
uint64_t countNames(const fs::path &folder, const struct stat &of) {
  uint64_t found = 0;
  int entries = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end;
       !failed && at != end && entries < mostEntries;
       at.increment(failed), ++entries) {
    struct stat status;
    found += lstat(at->path().c_str(), &status) == 0 &&
             status.st_dev == of.st_dev && status.st_ino == of.st_ino;
  }
  return found;
}

/// Whether all names of a file are in the folder's tree, or in its repository
/// with a blob among them.
bool namesStayInTree(const fs::path &folder, const struct stat &of) {
  fs::path repository = repositoryOf(folder);
  uint64_t blobs =
      repository.empty() ? 0 : countNames(repository / "blobs", of);
  uint64_t others =
      countNames(blobs == 0 ? folder : repository / "snapshots", of);
  return blobs + others == of.st_nlink;
}

std::string advice(const LinkRule &links) {
  return absl::StrCat("; put a copy there",
                      links.howToAllow
                          ? absl::StrCat(", or ", links.howToAllow,
                                         " if you trust who made the folder")
                          : "");
}

/// A link that leads to nothing is damage: unlike a file that is missing,
/// somebody has put it there.
absl::Status brokenLink(const FileDescriptor &base, const std::string &name,
                        const std::string &path, int code) {
  char text[PATH_MAX];
  ssize_t size = readlinkat(base.get(), name.c_str(), text, sizeof(text));
  std::string_view target(text, size < 0 ? 0 : static_cast<size_t>(size));
  return absl::DataLossError(
      absl::StrCat(quote(path), ": is a symbolic link to ", quote(target),
                   ", which cannot be opened: ", std::strerror(code)));
}

/// Opens where the link `name` leads.
absl::StatusOr<FileDescriptor> openLinked(const FileDescriptor &base,
                                          const std::string &name,
                                          const std::string &path,
                                          const LinkRule &links) {
  FileDescriptor place(openat(base.get(), name.c_str(), O_PATH | O_CLOEXEC));
  if (place.get() < 0)
    return brokenLink(base, name, path, errno);
  fs::path target = pathOf(place);
  if (!links.followAll && !staysInTree(target, pathOf(base)))
    return absl::DataLossError(absl::StrCat(
        quote(path), ": is a symbolic link to ", quote(target.native()),
        ", which is neither in its folder nor a blob of its snapshot in the "
        "cache of the Hugging Face Hub",
        advice(links)));
  struct stat status;
  if (fstat(place.get(), &status) == 0 && !S_ISREG(status.st_mode))
    return absl::DataLossError(absl::StrCat(quote(path), ": is a link to ",
                                            kindOfFile(status.st_mode),
                                            ", expected a regular file"));
  FileDescriptor file(
      ::open(selfLink(place).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0)
    return openError(path, errno);
  return file;
}

} // namespace

absl::StatusOr<InputFile> InputFile::openInFolder(const std::string &folder,
                                                  const std::string &name,
                                                  const LinkRule &links) {
  std::string path = absl::StrCat(folder, "/", name);
  if (!isPlainName(name))
    return absl::DataLossError(absl::StrCat(
        quote(name), ": expected a plain file name in folder ", quote(folder),
        ", without '/', at most ", NAME_MAX, " bytes"));
  FileDescriptor base(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (base.get() < 0)
    return openError(folder, errno);
  // O_NONBLOCK: opening a pipe nobody writes to must not wait.
  FileDescriptor file(
      openat(base.get(), name.c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (file.get() < 0 && errno != ELOOP)
    return openError(path, errno);
  if (file.get() < 0) {
    absl::StatusOr<FileDescriptor> linked = openLinked(base, name, path, links);
    if (!linked.ok())
      return linked.status();
    file = *std::move(linked);
  }
  struct stat status;
  if (!links.followAll && fstat(file.get(), &status) == 0 &&
      S_ISREG(status.st_mode) && status.st_nlink > 1 &&
      !namesStayInTree(pathOf(base), status))
    return absl::DataLossError(absl::StrCat(
        quote(path), ": has ", status.st_nlink,
        " hard links, not all of them in its folder, so its bytes may belong "
        "to another one",
        advice(links)));
  return fromDescriptor(std::move(file), path);
}

} // namespace meshwork::runtime
