// Products for a destination cut into blocks: whole blocks and the smaller
// last ones, in both dims.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

class Carver;

/// `size` elements in blocks of `block`, the last one smaller.
struct Cut {
  int64_t size = 0, block = 1;
  int64_t count() const { return (size + block - 1) / block; }
  int64_t lengthAt(int64_t index) const {
    return index + 1 < count() ? block : size - index * block;
  }
};

class GemmGrid {
public:
  /// `specOf(rows, columns)` describes the product of such a block.
  absl::Status describe(Cut rows, Cut columns,
                        absl::FunctionRef<GemmSpec(int64_t, int64_t)> specOf);
  absl::Status generate(int threads);

  /// The product for a block of that many rows and columns, each either a
  /// whole block's or the last one's.
  Gemm &at(int64_t rows, int64_t columns) {
    return *gemms[(rows != blockRows) * 2 + (columns != blockColumns)];
  }
  /// rhs of that product as run() takes it: packed to `to`, or as it is.
  const std::byte *packed(int64_t rows, int64_t columns, int thread,
                          const std::byte *rhs, std::byte *to,
                          std::byte *scratch);
  uint64_t scratchBytes() const;
  uint64_t packedBytes() const; // a multiple of 64
  /// Memory for packed(); null where rhs is taken as it is.
  std::byte *takePacked(Carver &carver) const;

private:
  int64_t blockRows = 0, blockColumns = 0;
  std::unique_ptr<Gemm> gemms[4]; // null where no such block occurs
};

} // namespace meshwork::runtime::cpu
