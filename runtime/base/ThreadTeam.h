// A fixed team of threads that share one rank's loops.
//
//   ThreadTeam team(2, {});
//   team.parallelFor(rows, [&](int64_t begin, int64_t end, int thread) { ...
//   });
//
// The split is a function of (items, size of the team) alone. Kernels keep the
// bits independent of that split: an item's arithmetic never depends on which
// range it is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace meshwork::runtime {

class ThreadTeam {
public:
  /// Range of items for one thread; `thread` counts from 0, the caller is 0.
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end, int thread)>;

  /// Starts `threads` - 1 workers; less than one counts as one.
  ///   cpus  thread t is pinned to cpus[t % cpus.size()], the caller included;
  ///         empty: nothing is pinned. A CPU that the process may not use is
  ///         left out in silence: pinning is for speed alone.
  /// Where the system gives fewer threads the team works with those; see
  /// status().
  ThreadTeam(int threads, std::vector<int> cpus);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  /// Calls `body` once per thread that has items, on contiguous ranges that
  /// cover [0, items), and returns when all are done. Only the thread that
  /// made the team calls it, and never from inside a body.
  void parallelFor(int64_t items, Body body);

  /// resourceExhausted when some worker could not be started.
  const absl::Status &status() const { return started; }
  int size() const { return static_cast<int>(workers.size()) + 1; }

private:
  void work(int thread, int cpu);
  void runShare(int thread) const;

  // Written by the caller before `epoch` rises, read by workers after.
  int64_t items = 0;
  const Body *body = nullptr;
  bool stopping = false;

  // One cache line each: workers poll `epoch` while others count `pending`
  // down.
  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<uint32_t> pending{0};
  std::vector<std::thread> workers;
  absl::Status started;
};

} // namespace meshwork::runtime
