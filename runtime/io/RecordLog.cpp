#include "runtime/io/RecordLog.h"

#include <cerrno>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {
/// This machine is little endian, as the format is.
template <typename T> void appendBytes(std::string &to, T value) {
  to.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

} // namespace

absl::StatusOr<RecordLog::Checksum> RecordLog::checksumOfIsal() {
  static_assert(std::is_same_v<decltype(&crc32_iscsi), Checksum>);
  void *library = ::dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  void *found = library ? ::dlsym(library, "crc32_iscsi") : nullptr;
  if (!found)
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot open libisal.so.2 (", ::dlerror(),
        "): files of events need ISA-L; on Debian, install libisal2"));
  return reinterpret_cast<Checksum>(found);
}

/// Stored checksums are masked, since one of bytes that hold their own checksum
/// is weak (TensorFlow, core/lib/hash/crc32c.h). A record is below 2 GiB.
uint32_t RecordLog::maskedChecksum(std::string_view bytes) const {
  auto *data = reinterpret_cast<unsigned char *>(
      const_cast<char *>(bytes.data())); // The library only reads.
  uint32_t sum = ~checksum(data, static_cast<int>(bytes.size()), ~0u);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

std::string RecordLog::framed(std::string_view record) const {
  std::string text;
  appendBytes(text, uint64_t{record.size()});
  appendBytes(text, maskedChecksum(text));
  text.append(record);
  appendBytes(text, maskedChecksum(record));
  return text;
}

absl::Status RecordLog::failed(const char *what) const {
  return absl::UnavailableError(
      absl::StrCat(quote(path), ": cannot ", what, ": ", std::strerror(errno)));
}

absl::StatusOr<RecordLog> RecordLog::createIn(const std::string &folder,
                                              const std::string &name) {
  absl::StatusOr<Checksum> checksum = checksumOfIsal();
  if (!checksum.ok())
    return checksum.status();
  RecordLog log;
  log.checksum = *checksum;
  log.path = absl::StrCat(folder, "/", name);
  log.descriptor = FileDescriptor(::open(
      log.path.c_str(),
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0666));
  if (log.descriptor.get() < 0)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(log.path), ": cannot be created: ", std::strerror(errno)));
  return log;
}

absl::Status RecordLog::append(std::string_view record) {
  std::string text = framed(record);
  if (descriptor.writeAll(text.data(), text.size())) {
    size += text.size();
    return absl::OkStatus();
  }
  absl::Status status = failed("write");
  // Where this fails too, a reader stops at the record that was cut off.
  (void)!::ftruncate(descriptor.get(), static_cast<off_t>(size));
  return status;
}

absl::Status RecordLog::sync() const {
  return fdatasync(descriptor.get()) == 0 ? absl::OkStatus() : failed("sync");
}

} // namespace meshwork::runtime
