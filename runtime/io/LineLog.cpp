#include "runtime/io/LineLog.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {

absl::StatusOr<LineLog> LineLog::open(const std::string &path,
                                      std::string_view beginning) {
  LineLog log;
  log.path = path;
  log.descriptor = FileDescriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY,
             0666));
  struct stat status;
  if (log.descriptor.get() < 0 || fstat(log.descriptor.get(), &status) != 0)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(path), ": cannot be written: ", std::strerror(errno)));
  log.isRegular = S_ISREG(status.st_mode);
  if (log.isRegular && status.st_size > 0)
    if (absl::Status fits = log.checkBeginning(
            beginning, static_cast<uint64_t>(status.st_size));
        !fits.ok())
      return fits;
  return log;
}

absl::Status LineLog::checkBeginning(std::string_view beginning,
                                     uint64_t size) {
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

absl::Status LineLog::append(std::string_view line) {
  std::string text = endsInLine ? "\n" : "";
  text.append(line).append("\n");
  struct stat before = {};
  bool canTakeBack = isRegular && fstat(descriptor.get(), &before) == 0;
  if (descriptor.writeAll(text.data(), text.size())) {
    endsInLine = false;
    return absl::OkStatus();
  }
  absl::Status failed = absl::UnavailableError(
      absl::StrCat(quote(path), ": cannot write: ", std::strerror(errno)));
  if (canTakeBack && ftruncate(descriptor.get(), before.st_size) != 0)
    endsInLine = true;
  return failed;
}

} // namespace meshwork::runtime
