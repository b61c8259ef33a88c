#include "runtime/run/OpenDevice.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/run/ComparingDevice.h"

namespace meshwork::runtime {

absl::StatusOr<std::unique_ptr<Device>>
openDevice(const plan::Plan &plan, const DeviceOptions &options) {
  if (plan.device() == plan::Device::cuda) {
    absl::StatusOr<std::unique_ptr<Device>> gpus =
        cuda::CudaDevice::open(plan, options);
    if (!gpus.ok() || !options.comparesCpu)
      return gpus;
    return ComparingDevice::open(std::move(*gpus), plan);
  }
  if (options.comparesCpu || options.shareGpu || options.synchronous ||
      options.tunesMatmuls || options.cudnnAttention ||
      options.wgmmaAttention || options.noWgmmaAttention ||
      options.ncclMaxCtas > 0 || options.ncclRegister)
    return absl::InvalidArgumentError(
        "the plan is for the CPU: --compare-cpu, --cudnn-attention, "
        "--nccl-max-ctas, --nccl-register, --no-wgmma-attention, --share-gpu, "
        "--synchronous, --tune-matmuls and --wgmma-attention are "
        "for plans of [target] device = \"cuda\"");
  return CpuDevice::open(plan);
}

} // namespace meshwork::runtime
