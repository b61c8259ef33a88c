// What a GPU does a second, without a plan: products, copies, launches and
// attention. README.md says what each is measured by.
#pragma once

#include "runtime/device/cuda/FitRate.h"
#include "runtime/device/cuda/Queue.h"

namespace meshwork::runtime::cuda {

/// Flops a second of attention: with heads of d elements whose queries see s
/// keys in the mean, `flops` times d / (d + halfHead) and s / (s + halfKeys).
struct AttentionRate {
  double flops = 0, halfHead = 0, halfKeys = 0; // flops 0: not measured
};

struct GpuWork {
  FittedRate f32, bf16, fp8; // of products; fp8.flops is 0 where it has none
  double copyBytes = 0;      // that a copy reads and writes a second
  double launchSeconds = 0;  // to begin a kernel of a graph
  /// Bytes a second each way, between its memory and the host's, while as many
  /// come the other way; and what one copy takes besides.
  double hostBytes = 0, hostSeconds = 0;
  /// In bf16; plans count the gradient as two forward passes.
  AttentionRate forward, gradient;
  std::string whyNoAttention; // "": it was measured
};

/// Takes some seconds. The queues that it makes are of `owner`. By all ranks of
/// a node at the same time, since they share links and power.
absl::StatusOr<GpuWork> measureGpu(const Gpu &gpu, const QueueOwner &owner);

/// Its compute capability.
absl::Status readCapability(const Gpu &gpu, int &major, int &minor);

/// What target.arch is for GPUs of this compute capability: "sm_90a". Those
/// older than 8.0 run no plan.
const char *archOf(int major);
/// Whether they multiply numbers of 8 bits.
bool hasFloat8(int major, int minor);

} // namespace meshwork::runtime::cuda
