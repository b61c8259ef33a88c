#include "runtime/comm/World.h"
#include "runtime/base/StartThread.h"
#include <chrono>
#include <ctime>
#include <sched.h>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;
/// A wait shorter than this is not worth telling anybody about.
constexpr auto worthTelling = std::chrono::milliseconds(100);
constexpr int spinRounds = 300, yieldRounds = 3000;

/// A thread beside the computation naps at once: its core computes.
void pause(int round, bool spins, bool beside) {
  if (spins && !beside && round < spinRounds)
    return;
  if (!beside && round < yieldRounds) {
    ::sched_yield();
    return;
  }
  timespec nap{0, 50'000};
  ::nanosleep(&nap, nullptr);
}

Waiting waitingFor(const std::vector<Messages::Pending> &pending,
                   const std::string &what) {
  Waiting waiting{true, what, {}};
  for (const Messages::Pending &one : pending)
    waiting.peers.push_back(one.peer);
  return waiting;
}
} // namespace

absl::StatusOr<World *> World::start(absl::StatusOr<Messages *> messages,
                                     double timeoutSeconds, bool spins) {
  if (!messages.ok())
    return messages.status();
  auto *world = new World(**messages, timeoutSeconds, spins);
  absl::Status started =
      startThread(world->listener, [world] { world->listen(); });
  if (!started.ok())
    return started;
  return world;
}

absl::Status World::wait(uint32_t lane, std::vector<Messages::Pending> &pending,
                         const std::string &what) {
  auto start = Clock::now(); // begins anew where nobody is at fault
  bool told = false, beside = lane != 0 && lane < serviceLane;
  absl::Status status;
  for (int round = 0; !pending.empty(); ++round) {
    status = messages.poll(pending);
    if (status.ok() && firstFailure.isSet())
      status = firstFailure.status();
    if (!status.ok() || pending.empty())
      break;
    pause(round, spins, beside);
    if (round % 16 != 0)
      continue;
    auto waited = Clock::now() - start;
    if (!told && waited > worthTelling) {
      setWaiting(lane, waitingFor(pending, what));
      told = true;
    }
    if (std::chrono::duration<double>(waited).count() > timeout) {
      status = blame(waitingFor(pending, what), timeout);
      if (!status.ok())
        break;
      start = Clock::now();
    }
  }
  if (told)
    setWaiting(lane, {});
  if (!status.ok())
    giveUp(pending);
  return status;
}

void World::setWaiting(uint32_t lane, const Waiting &waiting) {
  std::lock_guard<std::mutex> lock(mutex);
  waits[lane] = waiting;
}

void World::setFileWork(uint32_t, std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  fileWork = std::move(what);
}

absl::Status World::blame(const Waiting &mine, double seconds) {
  absl::Status found = runtime::blame(
      me, count, mine, seconds, [&](uint32_t peer) -> std::optional<Waiting> {
        Waiting answer;
        if (!ask(peer, answer))
          return std::nullopt;
        return answer;
      });
  return firstFailure.isSet() ? firstFailure.status() : found; // told meanwhile
}

void World::finish() {
  stopping = true;
  listener.join();
  messages.finish();
}

void World::abort(int code) { messages.abort(code); }

} // namespace meshwork::runtime
