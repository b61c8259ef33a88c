// Files as data, never as memory: ranges are read with pread. So a file that
// shrinks while it is in use is an error with its name in it and not a SIGBUS.
//
// Status codes of everything in runtime/io, and the exit code a tool gives
// them:
//   kInvalidArgument    a wrong option or call                       64
//   kDataLoss           the bytes of a file break its format         65
//   kUnimplemented      a format of another release                  65
//   kNotFound           no such file, or it may not be read          66
//   kFailedPrecondition a file cannot be created there               73
//   kUnavailable        reading or writing failed on the way         74
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include "lib/Text/FileKind.h"
#include "meshwork/Text/Escape.h"

namespace meshwork::runtime {

/// Checked arithmetic for numbers that come from a file.
inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}
inline std::optional<uint64_t> checkedMultiply(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

using meshwork::quote;

/// "a folder", "a pipe", "a socket" or "a device", of what is no regular file.
const char *kindOfFile(mode_t mode);

/// Why `path` could not be opened, by errno.
absl::Status openError(const std::string &path, int code);

/// The folder that `path` lies in: "." where it names none.
std::string folderOf(const std::string &path);

/// Memory, length and place in a file of what goes past the page cache are
/// multiples of it: enough for the disks and file systems that there are.
constexpr uint64_t directBytes = 4096;

/// Owns a file descriptor.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor(descriptor) {}
  FileDescriptor(FileDescriptor &&other) noexcept;
  FileDescriptor &operator=(FileDescriptor &&other) noexcept;
  ~FileDescriptor();
  int get() const { return descriptor; }
  /// False (and errno) when not all could be written.
  bool writeAll(const void *from, uint64_t bytes) const;
  /// The same past the page cache: those of the bytes that fill blocks of
  /// directBytes, and where the file system can.
  bool writeAllPastCache(const void *from, uint64_t bytes) const;
  /// Closes now; false (and errno) when the system reports a late write error.
  bool close();

  /// Whether reads and writes go past the page cache; false when they cannot.
  bool setDirect(bool isDirect) const;

private:
  int descriptor = -1;
};

/// What an untrusted file may reach by links in its folder.
struct LinkRule {
  bool followAll = false; // the user trusts who made the folder
  /// How the user can say so, for errors: "give --follow-links".
  const char *howToAllow = nullptr;
};

/// A regular file, opened for reading. Safe to use from several threads.
class InputFile {
public:
  /// Follows symbolic links: the user named this path.
  static absl::StatusOr<InputFile> open(const std::string &path);
  /// Opens `name`, which an untrusted file in `folder` named. `name` must be a
  /// plain file name of a regular file. A link, symbolic or hard, is obeyed if
  /// it stays in the folder's tree. If the folder is a snapshot in the cache of
  /// the Hugging Face Hub, it may also stay in the repository. Nothing else can
  /// be reached unless `links` allows it.
  static absl::StatusOr<InputFile> openInFolder(const std::string &folder,
                                                const std::string &name,
                                                const LinkRule &links = {});
  /// Bytes when opened.
  uint64_t size() const { return sizeBytes; }
  const std::string &path() const { return name; }
  /// Reads exactly `bytes` bytes at `offset`, or says why not.
  absl::Status readAt(uint64_t offset, void *to, uint64_t bytes) const;
  /// Once, before all readPastCache, for what is large and read once: reads go
  /// past the page cache where the system can, and there is no readAt any more.
  void goPastCache() const;
  /// As readAt. `offset` and `to` are multiples of directBytes, and `to` has
  /// room for `bytes` rounded up to one.
  absl::Status readPastCache(uint64_t offset, void *to, uint64_t bytes) const;

private:
  static absl::StatusOr<InputFile> fromDescriptor(FileDescriptor descriptor,
                                                  std::string path);
  FileDescriptor descriptor;
  std::string name;
  uint64_t sizeBytes = 0;
};

/// Nothing also when it cannot be read.
std::optional<FileKind> kindOf(const InputFile &file);

/// Whether a symbolic link at the name of an output may be followed.
enum class OutputLink : uint8_t {
  followed, // the user gave the name: NewFile.h, outputTarget
  replaced, // a tool made it up: the link goes, what it leads to stays
};

/// A file that appears under its name only when it is complete: written beside
/// the target under a name that cannot be foreseen, synced, renamed, and the
/// folder synced. Without commit() nothing is left behind. A file that is
/// replaced keeps its mode, owner and group; other hard links to it keep the
/// old contents.
class OutputFile {
public:
  /// Refuses what is no regular file, or may not be written.
  static absl::StatusOr<OutputFile>
  create(const std::string &path, OutputLink link = OutputLink::followed);
  /// `name` in `folder`, both made up by a tool: neither is followed.
  static absl::StatusOr<OutputFile> createInFolder(const std::string &folder,
                                                   const std::string &name);
  OutputFile(OutputFile &&other) noexcept;
  ~OutputFile();
  absl::Status write(const void *from, uint64_t bytes);
  /// For much that nobody reads soon: a copy into the page cache, and the
  /// cache's own work, cost more processor time than all else in a save. Best
  /// in large pieces of whole blocks (directBytes); any others go through the
  /// cache, as all do on a file system that cannot do without it.
  absl::Status writePastCache(const void *from, uint64_t bytes);
  absl::Status commit();

private:
  OutputFile() = default;
  /// At `path`, which is no link or one that is replaced.
  static absl::StatusOr<OutputFile> createAt(const std::string &path,
                                             FileDescriptor folder);
  absl::Status failed(const char *what) const;
  FileDescriptor folder, descriptor;
  std::string path;            // as errors name it
  std::string name, temporary; // in the folder; no temporary once committed
};

/// Names in the folder are durable after this; false (and errno) when not.
bool syncFolder(const std::string &path);

/// An OutputFile of `contents`, committed.
absl::Status writeWhole(const std::string &path, std::string_view contents,
                        OutputLink link = OutputLink::followed);
absl::Status writeWholeInFolder(const std::string &folder,
                                const std::string &name,
                                std::string_view contents);

} // namespace meshwork::runtime
