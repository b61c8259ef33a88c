#include "runtime/device/cuda/NcclMemory.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/machine/Memory.h"

namespace meshwork::runtime::cuda {
namespace {
void *pointerTo(DevicePtr address) { return reinterpret_cast<void *>(address); }
} // namespace

NcclMemory::~NcclMemory() {
  forget();
  if (memory && library)
    (void)library->memFree(pointerTo(memory));
  else if (memory)
    (void)driver.memoryFree(memory);
}

absl::Status NcclMemory::allocate(uint64_t wanted, const std::string &purpose) {
  if (wanted == 0)
    return absl::OkStatus();
  bytes = wanted;
  std::string what = absl::StrCat("taking ", bytesText(bytes), " ", purpose);
  if (!library)
    return driver.check(driver.memoryAllocate(&memory, bytes), what);
  void *made = nullptr;
  nccl::Result result = library->memAlloc(&made, bytes);
  memory = reinterpret_cast<DevicePtr>(made);
  if (result != nccl::result::unhandledCudaError)
    return library->check(result, what);
  return absl::ResourceExhaustedError(absl::StrCat(
      library->check(result, what).message(),
      ": ncclMemAlloc takes whole pieces of up to 512 MiB; leave "
      "--nccl-register out, or compile with a smaller micro batch"));
}

absl::Status NcclMemory::registerWith(NcclCommunicator &communicator) {
  if (!memory)
    return absl::OkStatus();
  void *handle = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(
      handle, communicator.registerMemory(pointerTo(memory), bytes));
  known.emplace_back(&communicator, handle);
  return absl::OkStatus();
}

void NcclMemory::forget() {
  for (auto [communicator, handle] : known)
    communicator->deregister(handle);
  known.clear();
}

} // namespace meshwork::runtime::cuda
