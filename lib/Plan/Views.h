// The views of a program, decoded and checked against its buffers.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/Plan/Repeats.h"
#include "meshwork/Plan/Types.h"
#include "meshwork/Text/Escape.h"
#include <string>
#include <vector>

namespace meshwork::plan {

using Instructions = flatbuffers::Vector<flatbuffers::Offset<Instruction>>;

using Shifts = flatbuffers::Vector<flatbuffers::Offset<Shift>>;

struct ViewInfo {
  uint32_t buffer;
  uint64_t offset; // bytes from the start of the buffer, before shifts
  DType dtype;
  absl::Span<const int64_t> shape;   // points into the plan; all positive
  absl::Span<const int64_t> strides; // in elements
  int64_t elements;
  uint64_t spanBytes;   // from the first byte to past the last
  bool contiguous;      // row-major without gaps
  const Shifts *shifts; // null: none
  uint64_t reach;       // bytes of the largest sum of shifts on any rank
  absl::Span<const uint64_t> advances; // points into the plan; see plan::View
  bool updated;                        // likewise

  /// Bytes that it lies further in these turns.
  uint64_t advanced(const Turns &turns) const;
};

/// 4 for f32 and i32, 2 for bf16.
inline uint64_t sizeOf(DType dtype) { return bytesOf(dtype); }

/// An empty list may be absent from a FlatBuffer; this is the one to read.
template <typename T>
const flatbuffers::Vector<T> &orEmpty(const flatbuffers::Vector<T> *list) {
  // A vector without elements is its length and nothing else.
  static const flatbuffers::uoffset_t none = 0;
  return list ? *list
              : *reinterpret_cast<const flatbuffers::Vector<T> *>(&none);
}

/// A view without its shifts, which borrows from `view`. dataLoss when it
/// overlaps itself or has too many dims (C1), or advances that no element fits
/// (C3).
absl::StatusOr<ViewInfo> viewAlone(const ViewT &view);

/// Whether it lies in a buffer of so many bytes on all ranks (C1), and in each
/// turn of the repeats around it (C3). `name` is the buffer's, quoted.
absl::Status checkInBuffer(const ViewInfo &view, uint64_t bytes,
                           const std::string &name);
absl::Status checkInTurns(const ViewInfo &view, uint64_t bytes,
                          const std::string &name,
                          const std::vector<RepeatShape> &around);

/// All views of `program`, in order. The error is dataLoss when a view leaves
/// its buffer on some rank in the first turn, or overlaps itself. Other causes:
/// an unknown type, more than 8 dims, or a shift along what is no axis. The
/// mesh of `plan` has been checked.
absl::StatusOr<std::vector<ViewInfo>> decodeViews(const Plan &plan,
                                                  const Program &program);

/// The verifier of FlatBuffers aligns a list by its length, not its elements.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *list) {
  return !list || list->size() == 0 ||
         reinterpret_cast<uintptr_t>(list->Data()) % alignof(T) == 0;
}

/// "f32[4,128]", for messages.
std::string describe(const ViewInfo &view);

using meshwork::quote;
std::string quote(const flatbuffers::String *text);

} // namespace meshwork::plan
