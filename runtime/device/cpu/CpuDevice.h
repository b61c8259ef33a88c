// This machine's CPU, for all ranks of a process.
#pragma once

#include "runtime/device/cpu/CpuExecutor.h"

namespace meshwork::runtime {

class CpuDevice : public Device {
public:
  /// failedPrecondition when this machine lacks what the plan's code uses.
  static absl::StatusOr<std::unique_ptr<Device>> open(const plan::Plan &plan);

  absl::StatusOr<uint64_t> checkMemory(const std::vector<CoreShare> &cores,
                                       uint32_t ranksHere) override;
  absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) override;

private:
  CpuDevice(const plan::Plan &plan, std::unique_ptr<KernelLibrary> kernels)
      : plan(plan), kernels(std::move(kernels)) {}

  const plan::Plan &plan;
  std::unique_ptr<KernelLibrary> kernels;
};

} // namespace meshwork::runtime
