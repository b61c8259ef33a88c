// What memory holds while products and attention are timed. With zeros a GPU
// takes less power and runs faster than it will on real numbers, so another
// choice may seem the best.
#pragma once

#include "runtime/device/cuda/Memory.h"

namespace meshwork::runtime::cuda {

/// Fills memory with random numbers of both signs, finite and below 2 whether
/// they are read as f32, bf16 or an 8-bit float. They repeat after 2 MB. Goes
/// into `queue`, whose staging this is.
absl::Status fillForTiming(const Driver &driver, Queue &queue, Staging &staging,
                           DevicePtr memory, uint64_t bytes);

} // namespace meshwork::runtime::cuda
