// Where a sender and a receiver, threads of one process, meet: the i-th send of
// a lane is for its i-th receive. The first to wait for a transfer that both
// have started copies it, from the sender's memory to the receiver's. So
// nothing needs a thread of its own, and a transfer ends once both sides have
// started it, whatever else they do.
#pragma once

#include "runtime/comm/Rendezvous.h"
#include "runtime/comm/Transport.h"
#include <condition_variable>
#include <deque>
#include <mutex>

namespace meshwork::runtime {

class PairLane {
public:
  PairLane(Transport &host, double timeoutSeconds, const Failure &failure)
      : host(host), timeout(timeoutSeconds), failure(failure) {}

  /// One side of it.
  struct Side {
    uint32_t rank, peer;
    bool sends;
    std::string what; // for messages
    std::vector<Strided> parts;
  };
  /// `side` stays until `finish`, and after a failure until all ranks have
  /// ended. The number of the transfer in this lane.
  uint64_t start(const Side &side);
  using Move =
      absl::FunctionRef<absl::Status(const Side &from, const Side &to)>;
  /// Once both have started it, one of them runs its `move`: whoever comes here
  /// first. Which one did. deadlineExceeded names the rank at fault; aborted
  /// when a rank failed; internal when shapes differ, which no plan does.
  absl::StatusOr<const Side *> finish(const Side &side, uint64_t number,
                                      Move move, CommTimes &times);
  /// Makes those that wait look at the failure.
  void wake();

private:
  struct Meeting {
    const Side *sender = nullptr, *receiver = nullptr, *mover = nullptr;
    enum class State : uint8_t { waits, moves, done } state = State::waits;
    uint32_t left = 0; // sides that have seen the end
  };
  Meeting &at(uint64_t number) { return meetings[number - first]; }
  absl::Status meet(const Side &side, uint64_t number,
                    std::unique_lock<std::mutex> &lock);
  absl::Status run(Meeting &meeting, Move move,
                   std::unique_lock<std::mutex> &lock);

  Transport &host;
  double timeout;
  const Failure &failure;
  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  std::deque<Meeting> meetings;
  uint64_t first = 0;       // number of meetings[0]
  uint64_t started[2] = {}; // by receivers, by senders
};

} // namespace meshwork::runtime
