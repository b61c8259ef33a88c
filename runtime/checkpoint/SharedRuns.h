// What a box of a file has of a box that is asked for. Internal to
// runtime/checkpoint.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/Manifest.h"

namespace meshwork::runtime {

/// Elements that are consecutive in the file and in the box that is asked for.
struct SharedRun {
  uint64_t byte;    // of the file
  uint64_t element; // of the box, row-major
  uint64_t count;
};

/// Runs of one length, in the order of the file.
class SharedRuns {
public:
  /// Nothing when the boxes have no element in common. `width` is the bytes of
  /// a stored element; both boxes lie in the tensor.
  static std::optional<SharedRuns> of(const StoredBox &stored, uint64_t width,
                                      absl::Span<const int64_t> begin,
                                      absl::Span<const int64_t> extent);
  uint64_t firstByte() const { return first.byte; }
  uint64_t endByte() const { return byteOf(numRuns - 1) + runBytes(); }

  /// Gives `take` what lies in bytes [begin, end), which cut no element.
  void inBytes(uint64_t begin, uint64_t end,
               absl::FunctionRef<void(const SharedRun &)> take) const;

private:
  /// A dim that is stepped through from run to run.
  struct Step {
    uint64_t extent, bytes, elements; // one index further, in file and box
  };
  SharedRun at(uint64_t run) const;
  uint64_t byteOf(uint64_t run) const { return at(run).byte; }
  uint64_t runBytes() const { return first.count * width; }

  SharedRun first{};
  uint64_t width = 0, numRuns = 1;
  std::vector<Step> steps; // the innermost first
};

} // namespace meshwork::runtime
