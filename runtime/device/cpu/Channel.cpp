#include "runtime/device/cpu/Channel.h"
#include "runtime/base/StartThread.h"
#include "runtime/machine/Clock.h"
#include <pthread.h>
#include <sched.h>

namespace meshwork::runtime {
namespace {

/// The thread that makes this one may be pinned to a single core, which
/// computes. Pinning is for speed alone, so a refusal is no error.
void runOn(const std::vector<int> &cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus)
    CPU_SET(cpu, &set);
  if (!cpus.empty())
    (void)::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}
} // namespace

Channel::Channel(std::vector<int> cpus)
    : created(startThread(thread,
                          [this, cpus = std::move(cpus)] { work(cpus); })) {}

Channel::~Channel() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Channel::start(Work work, uint32_t index) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back({std::move(work), index});
  }
  changed.notify_all();
}

void Channel::restart() {
  std::lock_guard<std::mutex> lock(mutex);
  finished = 0;
}

absl::Status Channel::wait(uint32_t count) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return finished >= count || !failure.ok(); });
  return finished >= count ? absl::OkStatus() : failure;
}

std::vector<Channel::Ended> Channel::takeEnded() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(ended, {});
}

void Channel::work(const std::vector<int> &cpus) {
  runOn(cpus);
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !tasks.empty(); });
    if (tasks.empty() || !failure.ok())
      return;
    Task task = std::move(tasks.front());
    tasks.pop_front();
    if (!task.work) {
      ++finished;
      changed.notify_all();
      continue;
    }
    lock.unlock();
    Ended one{task.index, steadyNs(), 0, {}};
    absl::Status status = task.work(one.times);
    one.endNs = steadyNs();
    lock.lock();
    if (status.ok()) {
      ended.push_back(one);
      ++finished;
    }
    failure = status;
    changed.notify_all();
  }
}

} // namespace meshwork::runtime
