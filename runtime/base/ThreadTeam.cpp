// Fork and join through two words: `epoch` tells the workers that there is
// work, `pending` tells the caller that it is done. Each side polls for some
// tens of microseconds, longer than the gap between two instructions of a
// plan, and then sleeps in the kernel, so that idle ranks cost nothing.
#include "runtime/base/ThreadTeam.h"

#include <algorithm>
#include <chrono>

#include <pthread.h>
#include <sched.h>

#include "runtime/base/StartThread.h"

namespace meshwork::runtime {
namespace {

constexpr std::chrono::microseconds pollTime{40};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `word` no longer holds `old`.
void waitForChange(const std::atomic<uint32_t> &word, uint32_t old) {
  auto deadline = std::chrono::steady_clock::now() + pollTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != old)
        return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  word.wait(old, std::memory_order_acquire);
}

void pin(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE)
    return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

} // namespace

ThreadTeam::ThreadTeam(int threads, std::vector<int> cpus) {
  auto cpuOf = [&](int thread) {
    return cpus.empty() ? -1 : cpus[thread % cpus.size()];
  };
  pin(cpuOf(0));
  for (int thread = 1; thread < threads && started.ok(); ++thread) {
    std::thread worker;
    started = startThread(
        worker, [this, thread, cpu = cpuOf(thread)] { work(thread, cpu); });
    if (started.ok())
      workers.push_back(std::move(worker));
  }
}

ThreadTeam::~ThreadTeam() {
  stopping = true;
  epoch.fetch_add(1, std::memory_order_release);
  epoch.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadTeam::parallelFor(int64_t numItems, Body function) {
  if (numItems <= 0)
    return;
  if (workers.empty() || numItems == 1) {
    function(0, numItems, 0);
    return;
  }
  items = numItems;
  body = &function;
  pending.store(static_cast<uint32_t>(workers.size()),
                std::memory_order_relaxed);
  epoch.fetch_add(1, std::memory_order_release);
  epoch.notify_all();
  runShare(0);
  for (uint32_t left; (left = pending.load(std::memory_order_acquire)) != 0;)
    waitForChange(pending, left);
}

void ThreadTeam::runShare(int thread) const {
  // Quotient and remainder first: items * thread could overflow.
  int64_t each = items / size(), extra = items % size();
  int64_t begin = each * thread + std::min<int64_t>(thread, extra);
  int64_t end = begin + each + (thread < extra ? 1 : 0);
  if (begin < end)
    (*body)(begin, end, thread);
}

void ThreadTeam::work(int thread, int cpu) {
  pin(cpu);
  for (uint32_t seen = 0;;) {
    waitForChange(epoch, seen);
    ++seen; // The caller waits for all, so no epoch is ever missed.
    if (stopping)
      return;
    runShare(thread);
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1)
      pending.notify_one();
  }
}

} // namespace meshwork::runtime
