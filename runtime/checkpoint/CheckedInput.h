// A file of a checkpoint, whose bytes are hashed before they are used. Internal
// to runtime/checkpoint.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/io/Files.h"
#include <absl/types/span.h>
#include <atomic>
#include <memory>
#include <mutex>

namespace meshwork::runtime {

/// Memory for one hashed range each, used again and again.
class RangeBuffers {
  struct Free {
    void operator()(unsigned char *buffer) const;
  };

public:
  using Buffer = std::unique_ptr<unsigned char[], Free>; // at directBytes
  Buffer take();
  void give(Buffer buffer);

private:
  std::mutex mutex;
  std::vector<Buffer> free;
};

/// Any number of threads may read.
class CheckedInput {
public:
  /// kDataLoss when it is not there in full length.
  static absl::StatusOr<CheckedInput> open(const std::string &folder,
                                           const StoredFile &stored);

  /// Bytes [begin, end) of one hashed range, in `buffer`. The whole range is
  /// hashed when it is first touched. kDataLoss when it was changed. `buffer`
  /// is of RangeBuffers.
  absl::StatusOr<const unsigned char *> read(uint64_t begin, uint64_t end,
                                             unsigned char *buffer) const;
  const std::string &path() const { return file.path(); }
  uint64_t size() const { return file.size(); }
  size_t numRanges() const { return stored->hashes.size(); }
  uint64_t endOfRange(size_t range) const;

private:
  absl::Status check(size_t range, unsigned char *buffer) const;

  InputFile file;
  const StoredFile *stored = nullptr;
  std::unique_ptr<std::atomic<bool>[]> isChecked; // of each range
};

} // namespace meshwork::runtime
