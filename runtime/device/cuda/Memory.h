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
  /// At `start`, and `owner` frees it.
  static DeviceMemory ownedBy(std::shared_ptr<void> owner, DevicePtr start);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other) noexcept;
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();
  DevicePtr address() const { return start; }

private:
  const Gpu *gpu = nullptr; // null: not freed here
  DevicePtr start = 0;
  std::shared_ptr<void> owner;
};

/// Memory of the host that a GPU copies to and from while the host goes on;
/// freed at the end, when nothing uses it any more.
class PinnedMemory {
public:
  static absl::StatusOr<PinnedMemory> create(const Gpu &gpu, size_t bytes);
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory &&other) noexcept;
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();
  std::byte *data() const { return start; }

private:
  const Gpu *gpu = nullptr;
  std::byte *start = nullptr;
};

/// A ring of pinned memory through which bytes travel, in order with a stream's
/// work. The host may be as far ahead of the stream as the ring is long: a part
/// of it is used again when the copy that used it has ended.
class Staging {
public:
  static absl::StatusOr<std::unique_ptr<Staging>> create(const Gpu &gpu,
                                                         Queue &queue);

  /// Returns once `from` may change.
  absl::Status write(DevicePtr to, absl::Span<const std::byte> from);
  /// Waits for everything that is in the stream.
  absl::Status read(DevicePtr from, absl::Span<std::byte> to);

private:
  /// A copy under way, or one that has ended.
  struct Part {
    uint64_t end = 0; // of what it uses, counted over all rounds of the ring
    EventHandle copied;
  };
  Staging(const Gpu &gpu, Queue &queue) : gpu(gpu), queue(queue) {}
  absl::Status allocate();
  absl::StatusOr<std::byte *> take(size_t bytes);
  absl::Status give();

  const Gpu &gpu;
  Queue &queue;
  PinnedMemory ring;
  std::array<Part, 64> parts;
  uint64_t begun = 0, ended = 0; // parts
  uint64_t taken = 0, free = 0;  // bytes: [free, taken) is in use
};

} // namespace meshwork::runtime::cuda
