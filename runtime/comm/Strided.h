// Boxes of strided tensors, run by run.
#pragma once

#include "absl/functional/function_ref.h"
#include "meshwork/Plan/Types.h"
#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwork::runtime {

/// A tensor in memory. Strides in elements, all positive.
struct Strided {
  std::byte *data = nullptr;
  plan::DType dtype = plan::DType::f32;
  std::vector<int64_t> shape, strides;

  int64_t elements() const;
  int64_t width() const { return plan::bytesOf(dtype); }
  bool operator==(const Strided &) const = default;
};

/// Elements with even steps on both sides; offsets and strides in elements.
struct Run {
  int64_t src, dst, count;
  int64_t srcStride, dstStride;
};

/// One box of elements seen in two tensors. Its elements have an order of their
/// own, which depends on sizes and strides alone: who packs a box and who
/// unpacks it agree.
class Box {
public:
  /// `sizes` elements per dim from `srcOffset` and `dstOffset` on.
  Box(const std::vector<int64_t> &sizes, const std::vector<int64_t> &srcStrides,
      const std::vector<int64_t> &dstStrides, int64_t srcOffset,
      int64_t dstOffset);

  struct Dim {
    int64_t size, srcStride, dstStride;
  };

  int64_t elements() const { return count; }
  /// The order of elements: outermost first, at least one; and where the first
  /// element is.
  const std::vector<Dim> &orderedDims() const { return dims; }
  int64_t firstInSrc() const { return srcOffset; }
  int64_t firstInDst() const { return dstOffset; }
  /// The runs of elements [begin, end), in order.
  void forEachRun(int64_t begin, int64_t end,
                  absl::FunctionRef<void(const Run &)> visit) const;
  /// Every element is at one place already, when the tensors start here.
  bool isInPlace(const std::byte *src, const std::byte *dst,
                 int64_t width) const;

private:
  std::vector<Dim> dims;
  int64_t srcOffset, dstOffset, count = 1;
};

/// Copies a run; `width` is 2 or 4 bytes an element.
void copyRun(const std::byte *src, int64_t srcStride, std::byte *dst,
             int64_t dstStride, int64_t count, int64_t width);
void zeroRun(std::byte *dst, int64_t dstStride, int64_t count, int64_t width);

} // namespace meshwork::runtime
