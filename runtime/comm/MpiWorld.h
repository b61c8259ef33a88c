// All processes of a run: messages with deadlines, and who is at fault when
// one does not come.
//
// A thread of its own listens for notices: a rank that failed tells all others,
// and a rank that waits too long asks whom the others wait for, until it finds
// one that does not answer or that waits for nobody.
#pragma once

#include "absl/types/span.h"
#include "runtime/comm/Blame.h"
#include "runtime/comm/MpiLibrary.h"
#include "runtime/comm/Rendezvous.h"
#include <deque>
#include <map>
#include <thread>

namespace meshwork::runtime {

class MpiWorld {
public:
  /// Messages of one lane between two ranks arrive in order. Lanes 0 to 8 are
  /// the channels of collectives; 0 is also the ranks' own threads'. Those of
  /// `transferLane` do per tag.
  static constexpr uint32_t serviceLane = 9, transferLane = 10, numLanes = 11;
  /// Of setWaiting: a wait that is on no lane.
  static constexpr uint32_t elsewhere = numLanes;

  /// Starts MPI; once in a process. Lives to the process's end, since MPI may
  /// hold on to memory after a failure.
  static absl::StatusOr<MpiWorld *> start(double timeoutSeconds, bool spins);

  uint32_t rank() const { return me; }
  uint32_t size() const { return count; }
  /// Set by the first failure here or elsewhere.
  const Failure &failure() const { return firstFailure; }
  /// Another rank has told of a failure.
  bool failedElsewhere() const { return noticed; }
  /// This rank cannot go on; its waits end. `announce` tells the others.
  void fail(const absl::Status &why) { firstFailure.set(me, why); }

  /// Messages under way. Memory stays until `wait` has returned; what is sent
  /// stays as it is.
  struct Pending {
    MpiLibrary::Request request;
    uint32_t peer;
    bool receives;
  };
  absl::Status send(uint32_t lane, uint32_t peer, const void *data,
                    size_t bytes, std::vector<Pending> &pending, int tag = 0);
  absl::Status receive(uint32_t lane, uint32_t peer, void *data, size_t bytes,
                       std::vector<Pending> &pending, int tag = 0);
  /// While messages are under way that nobody waits for, MPI is called often,
  /// so that they move.
  void setUnderWay(int change) { underWay += change; }
  /// Until all are done. deadlineExceeded names the rank at fault and what it
  /// did not come to, unless it works on files (FileWork); aborted when a rank
  /// failed.
  absl::Status wait(uint32_t lane, std::vector<Pending> &pending,
                    const std::string &what);

  /// Forgets what nobody will wait for: its memory may go after.
  void giveUp(std::vector<Pending> &pending) const;

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
  MpiWorld(const MpiLibrary &mpi, double timeout, bool spins)
      : mpi(mpi), timeout(timeout), spins(spins) {}
  absl::Status initialize();
  absl::Status check(int code, const char *call) const;
  absl::Status poll(std::vector<Pending> &pending) const;
  void post(uint32_t peer, int tag, std::string text);
  bool ask(uint32_t peer, Waiting &answer);
  void listen();
  void handle(uint32_t from, int tag, const std::string &text);
  Waiting longestWait();

  const MpiLibrary &mpi;
  double timeout;
  bool spins;
  uint32_t me = 0, count = 1;
  MpiLibrary::Comm lanes[numLanes] = {}, control = nullptr;
  Failure firstFailure;
  std::atomic<bool> announced{false}, noticed{false}, stopping{false};
  std::atomic<int> exitCode{0}, underWay{0};
  std::mutex mutex; // guards what follows
  std::condition_variable answered;
  std::map<uint32_t, Waiting> answers;
  Waiting waits[numLanes + 1]; // and elsewhere
  std::string fileWork;
  std::deque<std::pair<MpiLibrary::Request, std::string>> outbox;
  std::thread listener;
};

} // namespace meshwork::runtime
