// Where the ranks of one group, threads of one process, wait for each other.
#pragma once

#include "absl/status/status.h"
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// The first failure of any rank; shared by all groups of a transport.
class Failure {
public:
  /// False when another failure was there already.
  bool set(uint32_t rank, const absl::Status &why);
  bool isSet() const { return flag.load(std::memory_order_acquire); }
  /// Aborted, names the rank; ok when nothing failed.
  absl::Status status() const;
  /// What `set` was given.
  absl::Status cause() const;

private:
  std::atomic<bool> flag{false};
  mutable std::mutex mutex;
  absl::Status first;
  uint32_t failedRank = 0;
};

/// A barrier that knows who is missing. Each member has a counter of its own on
/// its own cache line. A member has arrived when its counter has reached mine.
/// So no counter is ever reset and no member can lap another.
class Rendezvous {
public:
  /// Time does not run while `fileWorkers`, of the whole process, is not 0.
  Rendezvous(std::vector<uint32_t> members, double timeoutSeconds, bool spins,
             const Failure &failure, const std::atomic<uint32_t> &fileWorkers);

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  uint32_t rankOf(uint32_t index) const { return ranks[index]; }

  /// Tells the others that member `index` is here, and waits for them.
  /// What a member wrote before is visible to all others after. `what` names
  /// the collective in messages.
  absl::Status arriveAndWait(uint32_t index, const std::string &what);

  /// Makes waiting members look at the failure.
  void wake();

private:
  struct alignas(64) Counter {
    std::atomic<uint64_t> value{0};
  };
  bool allArrived(uint64_t target) const;
  absl::Status block(uint64_t target, const std::string &what);
  absl::Status late(uint64_t target, const std::string &what) const;

  std::vector<uint32_t> ranks;
  std::unique_ptr<Counter[]> counters;
  double timeout;
  bool spins;
  const Failure &failure;
  const std::atomic<uint32_t> &fileWorkers;
  std::atomic<uint32_t> sleepers{0};
  std::mutex mutex;
  std::condition_variable condition;
};

} // namespace meshwork::runtime
