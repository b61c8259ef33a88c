// Memory of a GPU, and the way between it and the host.
#pragma once

#include "absl/types/span.h"
#include "runtime/device/cuda/Queue.h"
#include <array>

namespace meshwork::runtime::cuda {

/// Freed at the end.
class DeviceMemory {
public:
  /// resourceExhausted when the GPU has too little.
  static absl::StatusOr<DeviceMemory> create(const Gpu &gpu, uint64_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other) noexcept;
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();
  DevicePtr address() const { return start; }

private:
  const Gpu *gpu = nullptr;
  DevicePtr start = 0;
};

/// Pinned memory through which bytes travel, in order with a stream's work.
class Staging {
public:
  static absl::StatusOr<std::unique_ptr<Staging>> create(const Gpu &gpu,
                                                         Queue &queue);
  ~Staging();

  /// Returns once `from` may change.
  absl::Status write(DevicePtr to, absl::Span<const std::byte> from);
  /// Waits for everything that is in the stream.
  absl::Status read(DevicePtr from, absl::Span<std::byte> to);

private:
  struct Slot {
    std::byte *bytes = nullptr;
    EventHandle free; // the last copy from it has ended
  };
  Staging(const Gpu &gpu, Queue &queue) : gpu(gpu), queue(queue) {}
  absl::Status allocate();

  const Gpu &gpu;
  Queue &queue;
  std::array<Slot, 4> slots;
  size_t next = 0;
};

} // namespace meshwork::runtime::cuda
