#include "runtime/device/cuda/Queue.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Progress.h"
#include "runtime/machine/Clock.h"
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace meshwork::runtime::cuda {
namespace {
// A step ends many times a second: waiting starts with spinning, since a
// sleeping thread is woken late.
constexpr int64_t spinNs = 2'000'000;
constexpr auto nap = std::chrono::microseconds(20);
} // namespace

absl::StatusOr<EventHandle> EventHandle::create(const Gpu &gpu, bool timed) {
  EventHandle made;
  made.gpu = &gpu;
  MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
      gpu.driver().eventCreate(&made.event, timed ? 0 : eventDisableTiming),
      "making an event"));
  return made;
}

EventHandle::EventHandle(EventHandle &&other) noexcept
    : gpu(other.gpu), event(std::exchange(other.event, nullptr)) {}

EventHandle &EventHandle::operator=(EventHandle &&other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(event, other.event);
  return *this;
}

EventHandle::~EventHandle() {
  if (event)
    (void)gpu->driver().eventDestroy(event);
}

absl::StatusOr<std::unique_ptr<Queue>>
Queue::create(const Gpu &gpu, const QueueOwner &owner, bool urgent) {
  std::unique_ptr<Queue> queue(new Queue(gpu, owner));
  const Driver &driver = gpu.driver();
  int least = 0, greatest = 0;
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.streamPriorityRange(&least, &greatest),
                   "asking for the priorities of streams"));
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.streamCreate(&queue->handle, streamNonBlocking,
                                       urgent ? greatest : least),
                   "making a stream"));
  return queue;
}

Queue::~Queue() {
  if (handle)
    (void)gpu.driver().streamDestroy(handle);
}

absl::Status Queue::record(const EventHandle &event) {
  return gpu.driver().check(gpu.driver().eventRecord(event.get(), handle),
                            "recording an event");
}

absl::Status Queue::waitFor(const EventHandle &event) {
  return gpu.driver().check(
      gpu.driver().streamWaitEvent(handle, event.get(), 0),
      "letting a stream wait");
}

absl::Status Queue::finish() {
  return poll([&] { return gpu.driver().streamQuery(handle); });
}

absl::Status Queue::await(const EventHandle &event) {
  return poll([&] { return gpu.driver().eventQuery(event.get()); });
}

absl::Status Queue::poll(absl::FunctionRef<Result()> ask) {
  std::optional<PeerWait> wait;
  uint64_t ended = 0;
  for (int64_t start = steadyNs(), moved = start;;) {
    Result result = ask();
    int64_t now = steadyNs();
    if (result != result::notReady) {
      longestNs = std::max(longestNs, now - moved);
      return gpu.driver().check(result, "waiting for the GPU");
    }
    if (now - start < spinNs)
      continue;
    MESHWORK_RETURN_IF_ERROR(owner.host.failure());
    if (!owner.collectives) {
      MESHWORK_RETURN_IF_ERROR(alone(now - start));
      std::this_thread::sleep_for(nap);
      continue;
    }
    MESHWORK_RETURN_IF_ERROR(owner.collectives->check());
    uint64_t seen = owner.progress ? owner.progress->ended() : 0;
    if (wait && seen != ended) {
      longestNs = std::max(longestNs, now - moved);
      moved = now;
      wait.reset();
    }
    ended = seen;
    MESHWORK_RETURN_IF_ERROR(watch(wait));
    std::this_thread::sleep_for(nap);
  }
}

absl::Status Queue::alone(int64_t ns) const {
  if (static_cast<double>(ns) < owner.timeoutSeconds * 1e9)
    return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", owner.rank, ": copies from GPU ", gpu.ordinal(),
                   " have not ended in ", owner.timeoutSeconds, " s"));
}

absl::Status Queue::watch(std::optional<PeerWait> &wait) const {
  if (!wait) {
    Waiting waiting = owner.collectives->waiting(owner.rank);
    if (owner.progress) {
      bool meets = !waiting.peers.empty() && owner.progress->mayMeet();
      waiting.what =
          meets ? owner.progress->place() : owner.progress->describe();
      if (!meets)
        waiting.peers.clear();
    }
    wait.emplace(owner.host, owner.rank, waiting);
  }
  return wait->check(owner.timeoutSeconds +
                     10 * static_cast<double>(longestNs) * 1e-9);
}

} // namespace meshwork::runtime::cuda
