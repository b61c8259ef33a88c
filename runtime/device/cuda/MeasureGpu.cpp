#include "runtime/device/cuda/MeasureGpu.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/MeasureParts.h"

namespace meshwork::runtime::cuda {
absl::Status readCapability(const Gpu &gpu, int &major, int &minor) {
  for (auto [value, number] : {std::pair(&major, attribute::computeMajor),
                               {&minor, attribute::computeMinor}})
    MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
        gpu.driver().deviceGetAttribute(value, number, gpu.device()),
        "reading an attribute of the GPU"));
  return absl::OkStatus();
}

const char *archOf(int major) {
  return major >= 10 ? "sm_100" : major == 9 ? "sm_90a" : "sm_80";
}

bool hasFloat8(int major, int minor) {
  return major > 8 || (major == 8 && minor >= 9);
}

/// So that all ranks do the same at the same time.
static absl::Status meet(const QueueOwner &owner) {
  return owner.host.agree(owner.rank, 0, "the measurement of GPUs").status();
}

absl::StatusOr<GpuWork> measureGpu(const Gpu &gpu, const QueueOwner &owner) {
  std::unique_ptr<Queue> queue, other;
  MESHWORK_ASSIGN_OR_RETURN(queue, Queue::create(gpu, owner, false));
  MESHWORK_ASSIGN_OR_RETURN(other, Queue::create(gpu, owner, false));
  GpuWork work;
  MESHWORK_ASSIGN_OR_RETURN(work.launchSeconds, measureLaunch(gpu, *queue));
  MESHWORK_RETURN_IF_ERROR(meet(owner));
  MESHWORK_RETURN_IF_ERROR(measureProducts(gpu, *queue, work));
  MESHWORK_RETURN_IF_ERROR(meet(owner));
  MESHWORK_ASSIGN_OR_RETURN(work.copyBytes, measureCopy(gpu, *queue));
  MESHWORK_RETURN_IF_ERROR(meet(owner));
  MESHWORK_RETURN_IF_ERROR(measureHostLink(gpu, *queue, *other, work));
  MESHWORK_RETURN_IF_ERROR(meet(owner));
  MESHWORK_RETURN_IF_ERROR(measureAttention(gpu, *queue, work));
  return work;
}

} // namespace meshwork::runtime::cuda
