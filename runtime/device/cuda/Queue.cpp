#include "runtime/device/cuda/Queue.h"
#include "absl/strings/str_cat.h"
#include "runtime/StatusMacros.h"
#include "runtime/core/Clock.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace meshwork::runtime::cuda {
namespace {
// A step ends many times a second: waiting starts with spinning, since a
// sleeping thread is woken late.
constexpr int64_t spinNs = 2'000'000;
constexpr auto nap = std::chrono::microseconds(50);
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
Queue::create(const Gpu &gpu, const Transport &failure,
              DeviceTransport &collectives, bool urgent) {
  std::unique_ptr<Queue> queue(new Queue(gpu, failure, collectives));
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
  for (int64_t start = steadyNs();;) {
    Result result = ask();
    int64_t waited = steadyNs() - start;
    if (result != result::notReady) {
      longestNs = std::max(longestNs, waited);
      return gpu.driver().check(result, "waiting for the GPU");
    }
    if (waited < spinNs)
      continue;
    MESHWORK_RETURN_IF_ERROR(failure.failure());
    MESHWORK_RETURN_IF_ERROR(collectives.check());
    MESHWORK_RETURN_IF_ERROR(checkPatience(waited));
    std::this_thread::sleep_for(nap);
  }
}

absl::Status Queue::checkPatience(int64_t waitedNs) const {
  double seconds = static_cast<double>(waitedNs) * 1e-9;
  double limit =
      collectives.timeoutSeconds() + 10 * static_cast<double>(longestNs) * 1e-9;
  if (seconds <= limit)
    return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "GPU ", gpu.ordinal(), " did not end within ", std::round(limit),
      " s what it was given: it waits for a rank that is stopped or cut off, "
      "or a step takes longer than --timeout"));
}

} // namespace meshwork::runtime::cuda
