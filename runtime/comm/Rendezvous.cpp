#include "runtime/comm/Rendezvous.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <chrono>

namespace meshwork::runtime {
namespace {
/// About 50 us: longer than the skew of equal ranks, shorter than a time slice.
constexpr int spinRounds = 1000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
} // namespace

bool Failure::set(uint32_t rank, const absl::Status &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (flag.load(std::memory_order_relaxed))
    return false;
  first = why;
  failedRank = rank;
  flag.store(true, std::memory_order_release);
  return true;
}

absl::Status Failure::status() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (first.ok())
    return first;
  return absl::AbortedError(absl::StrCat("stopped because rank ", failedRank,
                                         " failed: ", first.message()));
}

absl::Status Failure::cause() const {
  std::lock_guard<std::mutex> lock(mutex);
  return first;
}

Rendezvous::Rendezvous(std::vector<uint32_t> members, double timeoutSeconds,
                       bool spins, const Failure &failure,
                       const std::atomic<uint32_t> &fileWorkers)
    : ranks(std::move(members)), counters(new Counter[ranks.size()]),
      timeout(timeoutSeconds), spins(spins), failure(failure),
      fileWorkers(fileWorkers) {}

bool Rendezvous::allArrived(uint64_t target) const {
  for (size_t i = 0; i < ranks.size(); ++i)
    if (counters[i].value.load(std::memory_order_seq_cst) < target)
      return false;
  return true;
}

absl::Status Rendezvous::arriveAndWait(uint32_t index,
                                       const std::string &what) {
  // A rank that comes late must not touch the memory of peers that gave up.
  if (failure.isSet())
    return failure.status();
  // Only this thread writes its counter.
  uint64_t target = counters[index].value.load(std::memory_order_relaxed) + 1;
  counters[index].value.store(target, std::memory_order_seq_cst);
  // Sequential consistency on the counter and on `sleepers`: either I see the
  // sleeper here, or it sees my counter before it sleeps.
  if (sleepers.load(std::memory_order_seq_cst) > 0)
    wake();
  for (int round = 0; spins && round < spinRounds; ++round) {
    if (allArrived(target))
      return absl::OkStatus();
    relax();
  }
  return block(target, what);
}

absl::Status Rendezvous::block(uint64_t target, const std::string &what) {
  auto patience = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(timeout));
  std::unique_lock<std::mutex> lock(mutex);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool inTime = false;
  do
    inTime = condition.wait_for(
        lock, patience, [&] { return allArrived(target) || failure.isSet(); });
  while (!inTime && fileWorkers.load() > 0);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  // A peer that fails after it arrived does not undo this meeting.
  if (allArrived(target))
    return absl::OkStatus();
  return inTime ? failure.status() : late(target, what);
}

absl::Status Rendezvous::late(uint64_t target, const std::string &what) const {
  std::vector<uint32_t> missing, present;
  for (size_t i = 0; i < ranks.size(); ++i)
    (counters[i].value.load() < target ? missing : present).push_back(ranks[i]);
  return absl::DeadlineExceededError(absl::StrCat(
      missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
      " did not arrive at ", what, " within ", timeout, " s; there ",
      present.size() == 1 ? "was rank " : "were ranks ",
      absl::StrJoin(present, ", ")));
}

void Rendezvous::wake() {
  // The lock makes sure that nobody is between looking and sleeping.
  {
    std::lock_guard<std::mutex> lock(mutex);
  }
  condition.notify_all();
}

} // namespace meshwork::runtime
