// Streams and events, and waiting for them without hanging.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/cuda/DeviceTransport.h"
#include "runtime/device/cuda/Gpu.h"
#include <limits>
#include <optional>

namespace meshwork::runtime::cuda {

class EventHandle {
public:
  static absl::StatusOr<EventHandle> create(const Gpu &gpu, bool timed = false);
  EventHandle() = default;
  EventHandle(EventHandle &&other) noexcept;
  EventHandle &operator=(EventHandle &&other) noexcept;
  ~EventHandle();
  Event get() const { return event; }

private:
  const Gpu *gpu = nullptr;
  Event event = nullptr;
};

class Progress;

/// A rank, and what its streams wait for.
struct QueueOwner {
  uint32_t rank;
  Transport &host;
  /// Null for copies beside the rank's work, which wait for no peer and may be
  /// waited for by any thread.
  DeviceTransport *collectives;
  const Progress *progress = nullptr; // of its work, where that is followed
  /// How long streams may take without progress.
  double timeoutSeconds = std::numeric_limits<double>::infinity();
};

/// One stream of a rank.
class Queue {
public:
  /// What fails in the owner's transports ends waiting; `urgent` streams go
  /// first.
  static absl::StatusOr<std::unique_ptr<Queue>>
  create(const Gpu &gpu, const QueueOwner &owner, bool urgent);
  ~Queue();
  Queue(const Queue &) = delete;
  Queue &operator=(const Queue &) = delete;

  Stream stream() const { return handle; }
  absl::Status record(const EventHandle &event);
  absl::Status waitFor(const EventHandle &event);
  /// Waits until all work in it has ended, or another rank has failed. The
  /// error is deadlineExceeded when no piece of the rank's work ends for longer
  /// than the time-out plus ten times the longest time so far. A step may be
  /// long, but not suddenly. It names the ranks at fault where the work may
  /// wait for peers, else the work itself.
  absl::Status finish();
  /// Until what was in the event's stream when it was recorded has ended; as
  /// `finish` otherwise. At once when it never was.
  absl::Status await(const EventHandle &event);

private:
  absl::Status poll(absl::FunctionRef<Result()> ask);
  absl::Status alone(int64_t ns) const;
  absl::Status watch(std::optional<PeerWait> &wait) const;
  Queue(const Gpu &gpu, const QueueOwner &owner) : gpu(gpu), owner(owner) {}

  const Gpu &gpu;
  QueueOwner owner;
  int64_t longestNs = 0;
  Stream handle = nullptr;
};

} // namespace meshwork::runtime::cuda
