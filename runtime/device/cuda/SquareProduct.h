// A product of square matrices, to be timed.
#pragma once

#include "runtime/device/cuda/BlasLt.h"
#include "runtime/device/cuda/Memory.h"

namespace meshwork::runtime::cuda {

class SquareProduct {
public:
  /// By the fastest algorithm of cuBLASLt. Operands are random: zeros take less
  /// power, which raised an H200's clocks by 12 %. e4m3 gives bf16; the other
  /// types give their own. unimplemented where the library has no such product.
  static absl::StatusOr<std::unique_ptr<SquareProduct>>
  create(const Gpu &gpu, const BlasLt &blas, Queue &queue, plan::DType type,
         int64_t size, uint64_t workspaceBytes);

  /// At the end of the queue's stream.
  absl::Status put() { return product->run(queue.stream(), false); }

private:
  explicit SquareProduct(Queue &queue) : queue(queue) {}
  absl::Status fill(const Gpu &gpu, uint64_t bytes, bool hasScale);

  Queue &queue;
  DeviceMemory memory;
  std::unique_ptr<BlasLtMatmul> product;
};

/// 2 size^3
double flopsOfSquare(int64_t size);

} // namespace meshwork::runtime::cuda
