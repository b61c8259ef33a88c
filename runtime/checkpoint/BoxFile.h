// Boxes of tensors as one safetensors file, written and hashed in one go.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include <absl/functional/function_ref.h>
#include <absl/types/span.h>
#include <functional>

namespace meshwork::runtime {

struct BoxToWrite {
  std::string tensor, state;
  std::string dtype; // "F32", "BF16"
  std::vector<int64_t> begin, extent;

  /// "h.0.ln_1.weight/first_moment[0:64]"
  std::string name() const;
  uint64_t bytes() const;
};

/// "states-00003.safetensors": of the writer with that number.
std::string statesName(uint32_t writer);

struct WrittenBoxes {
  StoredFile file;
  std::vector<uint64_t> offsets; // first byte of each box in the file
};

/// Gives the bytes of a box, row-major, piece by piece to `write`.
using WriteBytes =
    absl::FunctionRef<absl::Status(const void *from, uint64_t bytes)>;
using ProduceBox =
    absl::FunctionRef<absl::Status(size_t box, WriteBytes write)>;

/// invalidArgument names a box that no file can hold (safeTensorsHeader).
absl::Status checkBoxes(absl::Span<const BoxToWrite> boxes);

/// Asks for one box after the other. The file is there when it is complete and
/// durable, or not at all.
///   afterEach  as HashedFile calls it
absl::StatusOr<WrittenBoxes> writeBoxes(
    const std::string &folder, const std::string &name,
    absl::Span<const BoxToWrite> boxes, ProduceBox produce,
    std::function<void()> afterEach = [] {});

} // namespace meshwork::runtime
