#include "runtime/device/cuda/WgmmaCounters.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cuda {
namespace {
// Each has a sector of its own: those of ranks on one GPU are counted at once.
constexpr size_t counterBytes = 32, countersOfChunk = 1024;
} // namespace

WgmmaCounters::~WgmmaCounters() {
  for (DevicePtr chunk : chunks)
    (void)driver.memoryFree(chunk);
}

absl::StatusOr<DevicePtr> WgmmaCounters::take(Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (left == 0)
    MESHWORK_RETURN_IF_ERROR(addChunk(stream));
  return chunks.back() + --left * counterBytes;
}

absl::Status WgmmaCounters::addChunk(Stream stream) {
  constexpr size_t bytes = counterBytes * countersOfChunk;
  DevicePtr chunk = 0;
  MESHWORK_RETURN_IF_ERROR(driver.check(driver.memoryAllocate(&chunk, bytes),
                                        "cuMemAlloc of counters"));
  chunks.push_back(chunk);
  MESHWORK_RETURN_IF_ERROR(driver.check(
      driver.fillBytes(chunk, 0, bytes, stream), "clearing counters"));
  // Others may use some of them in streams of their own.
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.streamSynchronize(stream), "clearing counters"));
  left = countersOfChunk;
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
