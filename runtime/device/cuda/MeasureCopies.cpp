#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/MeasureParts.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/TimeRow.h"
#include "runtime/machine/Clock.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
/// What is copied grows until a copy takes that long, or there is no larger
/// size. On a GPU it is the largest, far beyond any cache.
constexpr uint64_t copiedBytes[] = {16 << 20, 64 << 20, 256 << 20};
constexpr uint64_t hostBytes[] = {4 << 20, 16 << 20, 64 << 20};
constexpr double enoughSeconds = 1.5e-4, enoughForHost = 1e-3;
constexpr int smallCopies = 50;

/// Copies between both memories, one each way.
class BothWays {
public:
  BothWays(const Gpu &gpu, Queue &out, Queue &back, uint64_t bytes)
      : gpu(gpu), out(out), back(back), bytes(bytes) {}

  absl::Status prepare() {
    MESHWORK_ASSIGN_OR_RETURN(onHost, PinnedMemory::create(gpu, 2 * bytes));
    MESHWORK_ASSIGN_OR_RETURN(onGpu, DeviceMemory::create(gpu, 2 * bytes));
    std::fill_n(onHost.data(), bytes, std::byte{1});
    return gpu.driver().check(
        gpu.driver().fillBytes(onGpu.address(), 1, 2 * bytes, out.stream()),
        "filling memory");
  }
  absl::Status putOut(uint64_t count) {
    return gpu.driver().check(gpu.driver().copyToDevice(onGpu.address(),
                                                        onHost.data(), count,
                                                        out.stream()),
                              "copying to the GPU");
  }
  absl::Status putBack() {
    return gpu.driver().check(gpu.driver().copyToHost(onHost.data() + bytes,
                                                      onGpu.address() + bytes,
                                                      bytes, back.stream()),
                              "copying to the host");
  }
  absl::Status finish() {
    MESHWORK_RETURN_IF_ERROR(out.finish());
    return back.finish();
  }
  /// Of so many copies each way.
  absl::StatusOr<double> seconds(int copies) {
    MESHWORK_RETURN_IF_ERROR(finish());
    int64_t begin = steadyNs();
    for (int i = 0; i < copies; ++i) {
      MESHWORK_RETURN_IF_ERROR(putOut(bytes));
      MESHWORK_RETURN_IF_ERROR(putBack());
    }
    MESHWORK_RETURN_IF_ERROR(finish());
    return static_cast<double>(std::max<int64_t>(steadyNs() - begin, 1)) * 1e-9;
  }

private:
  const Gpu &gpu;
  Queue &out, &back;
  uint64_t bytes;
  PinnedMemory onHost;
  DeviceMemory onGpu;
};
absl::StatusOr<double> secondsOfCopy(const Gpu &gpu, Queue &queue,
                                     uint64_t bytes) {
  DeviceMemory memory;
  MESHWORK_ASSIGN_OR_RETURN(memory, DeviceMemory::create(gpu, 2 * bytes));
  return meanSeconds(gpu, queue, [&] {
    return gpu.driver().check(
        gpu.driver().copyOnDevice(memory.address() + bytes, memory.address(),
                                  bytes, queue.stream()),
        "copying on the GPU");
  });
}

} // namespace

absl::StatusOr<double> measureCopy(const Gpu &gpu, Queue &queue) {
  double rate = 0;
  for (uint64_t bytes : copiedBytes) {
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(seconds, secondsOfCopy(gpu, queue, bytes));
    rate = 2 * static_cast<double>(bytes) / seconds;
    if (seconds >= enoughSeconds)
      break;
  }
  return rate;
}

absl::Status measureHostLink(const Gpu &gpu, Queue &out, Queue &back,
                             GpuWork &work) {
  for (uint64_t bytes : hostBytes) {
    BothWays copies(gpu, out, back, bytes);
    MESHWORK_RETURN_IF_ERROR(copies.prepare());
    double first = 0, seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(first, copies.seconds(1)); // touches the memory
    MESHWORK_ASSIGN_OR_RETURN(first, copies.seconds(1));
    int inRow = rowLength(first);
    MESHWORK_ASSIGN_OR_RETURN(seconds, copies.seconds(inRow));
    work.hostBytes = static_cast<double>(bytes) * inRow / seconds;
    MESHWORK_ASSIGN_OR_RETURN(work.hostSeconds,
                              fastestRow(gpu, out, smallCopies, [&] {
                                return copies.putOut(sizeof(float));
                              }));
    if (first >= enoughForHost)
      break;
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
