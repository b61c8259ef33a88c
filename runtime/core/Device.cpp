// Which device a plan runs on; the CPU's is small enough to be here.
#include "runtime/core/Checked.h"
#include "runtime/core/ComparingDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

class CpuDevice : public Device {
public:
  explicit CpuDevice(const plan::Plan &plan) : plan(plan) {}

  absl::Status load() {
    MESHWORK_RETURN_IF_ERROR(checkMachine(plan));
    absl::StatusOr<std::unique_ptr<KernelLibrary>> loaded =
        KernelLibrary::load(plan);
    MESHWORK_RETURN_IF_ERROR(loaded.status());
    kernels = std::move(*loaded);
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> checkMemory(const std::vector<CoreShare> &cores,
                                       uint32_t ranksHere) override {
    int threads = 1;
    for (const CoreShare &share : cores)
      threads = std::max(threads, share.threads);
    std::vector<absl::StatusOr<uint64_t>> needs;
    for (const plan::Program *program : *plan.programs())
      needs.push_back(neededBytes(*program, threads));
    const auto &programs = *plan.program_of_rank();
    uint64_t total = 0, most = 0, ranks = 0, here = 0;
    for (uint32_t rank = 0; rank < cores.size(); ++rank) {
      if (cores[rank].threads == 0)
        continue;
      const auto &need = needs[programs.Get(programs.size() == 1 ? 0 : rank)];
      MESHWORK_RETURN_IF_ERROR(need.status());
      if (!checkedAdd(total, *need, total))
        return bad("the memory of all ranks does not fit 64 bits");
      most = std::max(most, *need);
      ++ranks;
    }
    // One a process: those of other processes take as much.
    if (!checkedMul(total, ranks == 1 ? ranksHere : 1, here))
      return bad("the memory of all ranks does not fit 64 bits");
    uint64_t available = availableBytes();
    if (here <= available)
      return total;
    return absl::ResourceExhaustedError(absl::StrCat(
        "the plan needs ", bytesText(here), " (", ranksHere, " ranks of up to ",
        bytesText(most), " each), this process may take ", bytesText(available),
        ": compile with a smaller micro batch, or use a larger machine"));
  }

  absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) override {
    return CpuExecutor::create(setup, *kernels);
  }

private:
  const plan::Plan &plan;
  std::unique_ptr<KernelLibrary> kernels;
};
} // namespace

absl::StatusOr<std::unique_ptr<Device>>
Device::open(const plan::Plan &plan, const DeviceOptions &options) {
  if (plan.device() == plan::Device::cuda) {
    absl::StatusOr<std::unique_ptr<Device>> gpus =
        cuda::CudaDevice::open(plan, options);
    if (!gpus.ok() || !options.comparesCpu)
      return gpus;
    return ComparingDevice::open(std::move(*gpus), plan);
  }
  if (options.comparesCpu || options.shareGpu || options.synchronous ||
      options.tunesMatmuls || options.cudnnAttention)
    return absl::InvalidArgumentError(
        "the plan is for the CPU: --compare-cpu, --cudnn-attention, "
        "--share-gpu, --synchronous and --tune-matmuls are for plans of "
        "[target] device = \"cuda\"");
  auto device = std::make_unique<CpuDevice>(plan);
  MESHWORK_RETURN_IF_ERROR(device->load());
  return device;
}

} // namespace meshwork::runtime
