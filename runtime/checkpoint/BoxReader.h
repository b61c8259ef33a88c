// A box of a tensor from the boxes of its state that hold it. Internal to
// runtime/checkpoint.
#pragma once

#include "runtime/checkpoint/CheckedInput.h"

namespace meshwork::runtime {

/// A box that is asked for: row-major in `out`.
struct WantedBox {
  absl::Span<const int64_t> begin, extent;
  absl::Span<float> out;
};

/// Fills what `stored`, of elements of `width` bytes in `file`, has of it.
/// Reads the file from front to back.
absl::Status readBox(const CheckedInput &file, const StoredBox &stored,
                     uint64_t width, const WantedBox &wanted,
                     RangeBuffers &buffers);

} // namespace meshwork::runtime
