#include "runtime/device/cuda/Memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/StatusMacros.h"
#include "runtime/core/Memory.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime::cuda {
namespace {
// The tokens of a microbatch fit in one; weights take turns.
constexpr size_t slotBytes = size_t{1} << 20;
} // namespace

absl::StatusOr<DeviceMemory> DeviceMemory::create(const Gpu &gpu,
                                                  uint64_t bytes) {
  DeviceMemory memory;
  memory.gpu = &gpu;
  if (bytes == 0)
    return memory;
  Result result = gpu.driver().memoryAllocate(&memory.start, bytes);
  if (result == result::outOfMemory)
    return absl::ResourceExhaustedError(
        absl::StrCat("GPU ", gpu.ordinal(), ", ", gpu.describe(), ", gives no ",
                     bytesText(bytes),
                     ": compile with a smaller micro batch, or run on a GPU "
                     "that nobody else uses"));
  MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
      result, absl::StrCat("allocating ", bytesText(bytes))));
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory &&other) noexcept
    : gpu(other.gpu), start(std::exchange(other.start, 0)) {}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(start, other.start);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (start)
    (void)gpu->driver().memoryFree(start);
}

absl::StatusOr<std::unique_ptr<Staging>> Staging::create(const Gpu &gpu,
                                                         Queue &queue) {
  std::unique_ptr<Staging> staging(new Staging(gpu, queue));
  MESHWORK_RETURN_IF_ERROR(staging->allocate());
  return staging;
}

absl::Status Staging::allocate() {
  const Driver &driver = gpu.driver();
  for (Slot &slot : slots) {
    void *memory = nullptr;
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.hostAllocate(&memory, slotBytes, 0),
                     "allocating pinned memory"));
    slot.bytes = static_cast<std::byte *>(memory);
    MESHWORK_ASSIGN_OR_RETURN(slot.free, EventHandle::create(gpu));
  }
  return absl::OkStatus();
}

Staging::~Staging() {
  for (Slot &slot : slots)
    if (slot.bytes)
      (void)gpu.driver().hostFree(slot.bytes);
}

absl::Status Staging::write(DevicePtr to, absl::Span<const std::byte> from) {
  const Driver &driver = gpu.driver();
  for (size_t at = 0; at < from.size(); at += slotBytes) {
    Slot &slot = slots[next++ % slots.size()];
    size_t count = std::min(slotBytes, from.size() - at);
    // Not in the driver: the copy may lie behind a peer that does not come.
    MESHWORK_RETURN_IF_ERROR(queue.await(slot.free));
    std::memcpy(slot.bytes, from.data() + at, count);
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.copyToDevice(to + at, slot.bytes, count, queue.stream()),
        "copying to the GPU"));
    MESHWORK_RETURN_IF_ERROR(queue.record(slot.free));
  }
  return absl::OkStatus();
}

absl::Status Staging::read(DevicePtr from, absl::Span<std::byte> to) {
  const Driver &driver = gpu.driver();
  Slot &slot = slots[next++ % slots.size()];
  // What was written from this slot comes before in the stream.
  for (size_t at = 0; at < to.size(); at += slotBytes) {
    size_t count = std::min(slotBytes, to.size() - at);
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.copyToHost(slot.bytes, from + at, count, queue.stream()),
        "copying from the GPU"));
    MESHWORK_RETURN_IF_ERROR(queue.finish());
    std::memcpy(to.data() + at, slot.bytes, count);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
