// A new file of records, as TensorFlow frames them (TFRecord): each has its
// length and two checksums, so a reader sees a last one that was cut off.
//
//   auto log = RecordLog::createIn("runs/a", "events.out.tfevents.1.host");
//   status = log->append(bytes);
#pragma once

#include "runtime/io/Files.h"

namespace meshwork::runtime {

class RecordLog {
public:
  /// The folder exists, `name` in it does not; links there are not followed.
  /// kFailedPrecondition: the file cannot be created, or there is no ISA-L,
  /// which computes checksums. It is opened here, not at each program's start.
  static absl::StatusOr<RecordLog> createIn(const std::string &folder,
                                            const std::string &name);

  /// Writes the record in one piece, or nothing: what part of it did reach the
  /// file is taken back. kUnavailable when it cannot.
  absl::Status append(std::string_view record);

  /// What was appended is durable after this.
  absl::Status sync() const;

private:
  /// u64 length, u32 masked CRC-32C of it, the record, u32 masked CRC-32C of
  /// it.
  std::string framed(std::string_view record) const;
  uint32_t maskedChecksum(std::string_view bytes) const;
  absl::Status failed(const char *what) const;

  /// ISA-L's CRC-32C (Castagnoli): bytes, how many, what to begin with.
  using Checksum = unsigned int (*)(unsigned char *, int, unsigned int);
  static absl::StatusOr<Checksum> checksumOfIsal();

  Checksum checksum = nullptr;
  FileDescriptor descriptor;
  std::string path;
  uint64_t size = 0; // bytes of whole records
};

} // namespace meshwork::runtime
