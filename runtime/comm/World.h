// All processes of a run: messages with deadlines, and who is at fault when
// one does not come.
//
// A thread of its own listens for notices. A rank that failed tells all others.
// A rank that waits too long asks whom the others wait for, until it finds one
// that does not answer or waits for nobody.
#pragma once

#include "absl/types/span.h"
#include "runtime/comm/Blame.h"
#include "runtime/comm/Messages.h"
#include "runtime/comm/Rendezvous.h"
#include <map>
#include <thread>

namespace meshwork::runtime {

class World {
public:
  /// Messages of one lane between two ranks arrive in order. Lanes 0 to 8 are
  /// the channels of collectives; 0 is also the ranks' own threads'. Those of
  /// `transferLane` do per tag.
  static constexpr uint32_t serviceLane = 9, transferLane = 10, numLanes = 11;
  /// Of setWaiting: a wait that is on no lane.
  static constexpr uint32_t elsewhere = numLanes;

  /// Lives to the process's end, as does `messages`, which has `numLanes`: what
  /// carries them may hold on to memory after a failure.
  static absl::StatusOr<World *> start(absl::StatusOr<Messages *> messages,
                                       double timeoutSeconds, bool spins);

  uint32_t rank() const { return me; }
  uint32_t size() const { return count; }
  /// Set by the first failure here or elsewhere.
  const Failure &failure() const { return firstFailure; }
  /// Another rank has told of a failure.
  bool failedElsewhere() const { return noticed; }
  /// This rank cannot go on; its waits end. `announce` tells the others.
  void fail(const absl::Status &why) { firstFailure.set(me, why); }

  /// As Messages.
  absl::Status send(uint32_t lane, uint32_t peer, const void *data,
                    size_t bytes, std::vector<Messages::Pending> &pending,
                    int tag = 0) {
    return messages.send(lane, peer, data, bytes, pending, tag);
  }
  absl::Status receive(uint32_t lane, uint32_t peer, void *data, size_t bytes,
                       std::vector<Messages::Pending> &pending, int tag = 0) {
    return messages.receive(lane, peer, data, bytes, pending, tag);
  }
  /// While messages are under way that nobody waits for, their carrier is
  /// called often, so that they move.
  void setUnderWay(int change) { underWay += change; }
  /// Until all are done. deadlineExceeded names the rank at fault and what it
  /// did not come to, unless it works on files (FileWork); aborted when a rank
  /// failed.
  absl::Status wait(uint32_t lane, std::vector<Messages::Pending> &pending,
                    const std::string &what);

  /// Forgets what nobody will wait for: its memory may go after.
  void giveUp(std::vector<Messages::Pending> &pending) const {
    messages.giveUp(pending);
  }

  /// What this rank waits for, for those that ask.
  void setWaiting(uint32_t lane, const Waiting &waiting);
  /// What this rank does with files; see FileWork.
  void setFileWork(uint32_t rank, std::string what);
  /// As runtime::blame, by asking other processes; aborted when told of a
  /// failure meanwhile.
  absl::Status blame(const Waiting &mine, double seconds);

  /// Tells all other ranks of the failure here, once; their waits end with
  /// `aborted`. Nothing to do when another rank has told first.
  void announce(const absl::Status &why, int exitCode);
  /// The exit code that came with the failure elsewhere.
  int remoteExitCode() const { return exitCode; }

  /// All ranks together, at a good end.
  void finish();
  /// Ends all processes with `code`.
  [[noreturn]] void abort(int code);

private:
  World(Messages &messages, double timeout, bool spins)
      : messages(messages), timeout(timeout), spins(spins), me(messages.rank()),
        count(messages.size()) {}
  bool ask(uint32_t peer, Waiting &answer);
  void listen();
  void handle(const Messages::Notice &notice);
  Waiting longestWait();

  Messages &messages;
  double timeout;
  bool spins;
  uint32_t me, count;
  Failure firstFailure;
  std::atomic<bool> announced{false}, noticed{false}, stopping{false};
  std::atomic<int> exitCode{0}, underWay{0};
  std::mutex mutex; // guards what follows
  std::condition_variable answered;
  std::map<uint32_t, Waiting> answers;
  Waiting waits[numLanes + 1]; // and elsewhere
  std::string fileWork;
  std::thread listener;
};

} // namespace meshwork::runtime
