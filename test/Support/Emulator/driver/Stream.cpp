#include "test/Support/Emulator/driver/State.h"

#include "absl/strings/str_cat.h"

namespace meshwork::emulator {
namespace {

thread_local DeviceState *deviceOfWorker = nullptr;

} // namespace

DeviceState *runningDevice() { return deviceOfWorker; }

void failRunning(Result error, const std::string &text) {
  say(absl::StrCat("error ", error, ": ", text));
  Result none = code::success; // the first error stays
  if (deviceOfWorker)
    deviceOfWorker->error.compare_exchange_strong(none, error);
}

StreamState::StreamState(DeviceState &device, unsigned flags, int priority)
    : device(device), flags(flags), priority(priority),
      random(std::random_device()()) {}

void StreamState::start(const std::shared_ptr<StreamState> &stream) {
  // The thread holds the stream, so that closing it need not wait.
  std::thread([stream] { stream->run(); }).detach();
}

void StreamState::push(Work work) {
  std::lock_guard lock(mutex);
  queue.push_back(std::move(work));
  changed.notify_all();
}
void StreamState::close() {
  std::lock_guard lock(mutex);
  closed = true;
  changed.notify_all();
}
bool StreamState::idleSoon() {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, soon, [&] { return queue.empty() && !busy; });
}
bool StreamState::ended() const {
  std::lock_guard lock(mutex);
  return hasEnded;
}
void StreamState::waitIdle() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return queue.empty() && !busy; });
}

void StreamState::run() {
  deviceOfWorker = &device;
  unsigned jitter = state().settings.jitterUs;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return !queue.empty() || closed; });
    if (queue.empty())
      break;
    Work work = std::move(queue.front());
    queue.pop_front();
    busy = true;
    lock.unlock();
    if (jitter)
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % (jitter + 1)));
    work();
    work = nullptr; // what it holds goes before it counts as done
    lock.lock();
    busy = false;
    changed.notify_all();
  }
  hasEnded = true;
}

uint64_t EventState::begin() {
  std::lock_guard lock(mutex);
  return ++recorded;
}
void EventState::complete(uint64_t number) {
  std::lock_guard lock(mutex);
  if (number <= completed)
    return;
  completed = number;
  when = std::chrono::steady_clock::now();
  changed.notify_all();
}
void EventState::wait(uint64_t number) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return completed >= number; });
}
uint64_t EventState::last() const {
  std::lock_guard lock(mutex);
  return recorded;
}
bool EventState::done() const {
  std::lock_guard lock(mutex);
  return completed == recorded;
}
bool EventState::doneSoon() {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, soon, [&] { return completed == recorded; });
}
std::chrono::steady_clock::time_point EventState::time() const {
  std::lock_guard lock(mutex);
  return when;
}

} // namespace meshwork::emulator
