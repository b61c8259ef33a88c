// What a GPU's products reach.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/device/cuda/Queue.h"

namespace meshwork::runtime::cuda {

/// Tflop/s of a product of square matrices that takes a millisecond or more,
/// by the fastest algorithm of cuBLASLt.
absl::StatusOr<double> peakTflops(const Gpu &gpu, Queue &queue,
                                  plan::DType type);

} // namespace meshwork::runtime::cuda
