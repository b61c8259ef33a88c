#include "runtime/save/Pace.h"
#include "runtime/machine/Clock.h"
#include <ctime>

namespace meshwork::runtime {

/// Of this thread.
static int64_t processorNs() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void Pace::start(bool mayRest) {
  std::lock_guard<std::mutex> lock(mutex);
  rests = mayRest;
  began.reset();
}

void Pace::begin() {
  std::lock_guard<std::mutex> lock(mutex);
  if (began)
    return;
  began = steadyNs();
  changed.notify_all();
}

void Pace::rest() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return began || !rests; });
  if (!rests)
    return;
  std::chrono::nanoseconds left(*began + processorNs() * share - steadyNs());
  changed.wait_for(lock, left, [&] { return !rests; });
}

void Pace::hurry() {
  std::lock_guard<std::mutex> lock(mutex);
  rests = false;
  changed.notify_all();
}

} // namespace meshwork::runtime
