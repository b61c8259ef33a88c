// The parts of MeasureGpu.h. Each waits for the end of its work.
#pragma once

#include "runtime/device/cuda/MeasureGpu.h"

namespace meshwork::runtime::cuda {

/// The three rates of products. Of each time `launchSeconds` are left out:
/// estimates add them to every instruction.
absl::Status measureProducts(const Gpu &gpu, Queue &queue, GpuWork &work);
absl::StatusOr<double> measureLaunch(const Gpu &gpu, Queue &queue);
absl::StatusOr<double> measureCopy(const Gpu &gpu, Queue &queue);
absl::Status measureHostLink(const Gpu &gpu, Queue &out, Queue &back,
                             GpuWork &work);
/// Forward and gradient, where the runtime has kernels for the GPU; else the
/// reason.
absl::Status measureAttention(const Gpu &gpu, Queue &queue, GpuWork &work);

} // namespace meshwork::runtime::cuda
