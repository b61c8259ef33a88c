#include "runtime/io/LineLog.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

#include "runtime/io/NewFile.h"

namespace meshwork::runtime {

absl::StatusOr<LineLog> LineLog::open(const std::string &path,
                                      std::string_view beginning) {
  absl::Status followed = outputTarget(path).status();
  return followed.ok() ? openWith(path, beginning, 0) : followed;
}

absl::StatusOr<LineLog> LineLog::openWith(const std::string &path,
                                          std::string_view beginning,
                                          int moreFlags) {
  LineLog log;
  log.path = path;
  log.beginning = beginning;
  log.descriptor = FileDescriptor(::open(
      path.c_str(),
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | moreFlags, 0666));
  struct stat status;
  if (log.descriptor.get() < 0 || fstat(log.descriptor.get(), &status) != 0)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(path), ": cannot be written: ", std::strerror(errno)));
  log.isRegular = S_ISREG(status.st_mode);
  if (log.isRegular && status.st_size > 0)
    if (absl::Status fits =
            log.checkBeginning(static_cast<uint64_t>(status.st_size));
        !fits.ok())
      return fits;
  return log;
}

absl::Status LineLog::checkBeginning(uint64_t size) {
  absl::StatusOr<InputFile> file = InputFile::open(path);
  std::string found(std::min<uint64_t>(size, beginning.size()), '\0');
  char last = 0;
  absl::Status status = file.status();
  if (status.ok())
    status = file->readAt(0, found.data(), found.size());
  if (status.ok())
    status = file->readAt(size - 1, &last, 1);
  if (!status.ok())
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot append to a log that cannot be read: ", status.message()));
  if (!beginning.starts_with(found))
    return absl::FailedPreconditionError(
        absl::StrCat(quote(path),
                     ": is no log of earlier runs, to which lines could be "
                     "appended: it starts with ",
                     quote(found), ", expected ", quote(beginning),
                     "; name another file, or remove it"));
  endsInLine = last != '\n';
  return absl::OkStatus();
}

absl::Status LineLog::failed(const char *what) const {
  return absl::UnavailableError(
      absl::StrCat(quote(path), ": cannot ", what, ": ", std::strerror(errno)));
}

absl::Status LineLog::append(std::string_view line) {
  std::string text = endsInLine ? "\n" : "";
  text.append(line).append("\n");
  struct stat before = {};
  bool canTakeBack = isRegular && fstat(descriptor.get(), &before) == 0;
  if (descriptor.writeAll(text.data(), text.size())) {
    endsInLine = false;
    return absl::OkStatus();
  }
  absl::Status status = failed("write");
  if (canTakeBack && ftruncate(descriptor.get(), before.st_size) != 0)
    endsInLine = true;
  return status;
}

absl::Status LineLog::sync() const {
  return !isRegular || fdatasync(descriptor.get()) == 0 ? absl::OkStatus()
                                                        : failed("sync");
}

std::optional<uint64_t> LineLog::numberOf(std::string_view line) const {
  uint64_t number = 0;
  if (!line.starts_with(beginning))
    return std::nullopt;
  line.remove_prefix(beginning.size());
  auto [end, code] =
      std::from_chars(line.data(), line.data() + line.size(), number);
  return code == std::errc() ? std::optional(number) : std::nullopt;
}

/// Where what is to go begins in `text`, the end of the log. Its first line may
/// lack its beginning, and stays.
size_t LineLog::tailOf(std::string_view text, uint64_t from) const {
  size_t begin = text.rfind('\n') + 1; // of a line that was cut off, or none
  uint64_t above = UINT64_MAX;
  while (begin > 1) {
    size_t start = text.rfind('\n', begin - 2) + 1; // 0 without one
    auto number = numberOf(text.substr(start, begin - start));
    if (!number || *number < from || *number >= above)
      break;
    above = *number;
    begin = start;
  }
  return begin;
}

/// As much of the log's end as it takes to see a whole line that stays.
absl::StatusOr<std::string> LineLog::readTail(uint64_t from) const {
  absl::StatusOr<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.status();
  std::string text;
  for (uint64_t bytes = 1 << 16;; bytes *= 2) {
    text.resize(std::min(bytes, file->size()));
    if (absl::Status read =
            file->readAt(file->size() - text.size(), text.data(), text.size());
        !read.ok())
      return read;
    size_t begin = tailOf(text, from);
    if (text.size() == file->size() || begin > text.find('\n') + 1)
      return text.substr(begin);
  }
}

absl::Status LineLog::keepReplaced(std::string_view lines) const {
  absl::StatusOr<LineLog> replaced =
      openWith(replacedPath(), beginning, O_NOFOLLOW);
  if (!replaced.ok())
    return replaced.status();
  absl::Status kept = replaced->append(lines);
  return kept.ok() ? replaced->sync() : kept;
}

absl::Status LineLog::cutOff(uint64_t bytes) {
  struct stat now = {};
  if (fstat(descriptor.get(), &now) != 0 ||
      ftruncate(descriptor.get(), now.st_size - static_cast<off_t>(bytes)) != 0)
    return failed("take lines off");
  endsInLine = false;
  return sync();
}

absl::StatusOr<uint64_t> LineLog::takeOff(uint64_t from) {
  if (!isRegular)
    return 0;
  absl::StatusOr<std::string> tail = readTail(from);
  if (!tail.ok())
    return tail.status();
  // Of a line that was cut off nothing is told without its number.
  std::string_view lines = *tail, last = lines;
  last.remove_prefix(lines.rfind('\n') + 1);
  if (!numberOf(last))
    lines.remove_suffix(last.size());
  auto count = std::count(lines.begin(), lines.end(), '\n') +
               (lines.ends_with('\n') || lines.empty() ? 0 : 1);
  if (lines.ends_with('\n'))
    lines.remove_suffix(1);
  absl::Status done = lines.empty() ? absl::OkStatus() : keepReplaced(lines);
  if (done.ok() && !tail->empty())
    done = cutOff(tail->size());
  return done.ok() ? absl::StatusOr<uint64_t>(count) : done;
}

} // namespace meshwork::runtime
