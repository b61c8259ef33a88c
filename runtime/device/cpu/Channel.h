// A thread beside a rank's own: runs collectives and copies in the order in
// which they are started.
#pragma once

#include "runtime/comm/Transport.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace meshwork::runtime {

class Channel {
public:
  /// Adds what a collective spent.
  using Work = std::function<absl::Status(CommTimes &)>;
  /// What has run; `index` is what `start` was given.
  struct Ended {
    uint32_t index;
    int64_t beginNs, endNs;
    CommTimes times;
  };

  /// `cpus` to run on; empty: anywhere.
  explicit Channel(std::vector<int> cpus);
  /// Waits for what was started. After a failure of any rank that is short.
  ~Channel();
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;
  /// resourceExhausted when it has no thread: nothing may be started then.
  const absl::Status &status() const { return created; }

  // All from the rank's own thread.
  /// Null has nothing to do, but counts.
  void start(Work work, uint32_t index);
  /// Counts from here; everything started has been waited for.
  void restart();
  /// Until the first `count` since `restart` have ended. After a failure the
  /// others are not run, and every wait returns it.
  absl::Status wait(uint32_t count);
  /// What has ended since the last call.
  std::vector<Ended> takeEnded();

private:
  struct Task {
    Work work;
    uint32_t index;
  };
  void work(const std::vector<int> &cpus);

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
  std::vector<Ended> ended;
  uint32_t finished = 0;
  bool stopping = false;
  absl::Status failure;
  std::thread thread;
  absl::Status created;
};

} // namespace meshwork::runtime
