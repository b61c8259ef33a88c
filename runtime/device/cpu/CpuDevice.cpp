#include "runtime/device/cpu/CpuDevice.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Programs.h"
#include <algorithm>

namespace meshwork::runtime {

absl::StatusOr<std::unique_ptr<Device>>
CpuDevice::open(const plan::Plan &plan) {
  MESHWORK_RETURN_IF_ERROR(checkMachine(plan));
  absl::StatusOr<std::unique_ptr<KernelLibrary>> kernels =
      KernelLibrary::load(plan);
  MESHWORK_RETURN_IF_ERROR(kernels.status());
  return std::unique_ptr<Device>(new CpuDevice(plan, std::move(*kernels)));
}

absl::StatusOr<uint64_t>
CpuDevice::checkMemory(const std::vector<CoreShare> &cores,
                       uint32_t ranksHere) {
  int threads = 1;
  for (const CoreShare &share : cores)
    threads = std::max(threads, share.threads);
  std::vector<absl::StatusOr<uint64_t>> needs;
  for (const plan::Program *program : *plan.programs())
    needs.push_back(neededBytes(*program, threads));
  uint64_t total = 0, most = 0, ranks = 0, here = 0;
  for (uint32_t rank = 0; rank < cores.size(); ++rank) {
    if (cores[rank].threads == 0)
      continue;
    const auto &need = needs[plan::programOf(plan, rank)];
    MESHWORK_RETURN_IF_ERROR(need.status());
    if (!plan::checkedAdd(total, *need, total))
      return plan::bad("the memory of all ranks does not fit 64 bits");
    most = std::max(most, *need);
    ++ranks;
  }
  // One a process: those of other processes take as much.
  if (!plan::checkedMul(total, ranks == 1 ? ranksHere : 1, here))
    return plan::bad("the memory of all ranks does not fit 64 bits");
  uint64_t available = availableBytes();
  if (here <= available)
    return total;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the plan needs ", bytesText(here), " (", ranksHere, " ranks of up to ",
      bytesText(most), " each), this process may take ", bytesText(available),
      ": compile with a smaller micro batch, or use a larger machine"));
}

absl::StatusOr<std::unique_ptr<Executor>>
CpuDevice::makeExecutor(const ExecutorSetup &setup) {
  return CpuExecutor::create(setup, *kernels);
}

} // namespace meshwork::runtime
