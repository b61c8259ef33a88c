#include "runtime/comm/MpiWorld.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/StartThread.h"
#include <algorithm>
#include <chrono>
#include <ctime>
#include <sched.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;
/// MPI counts in int; larger messages travel in parts.
constexpr size_t maxMessage = size_t{1} << 30;
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

Waiting waitingFor(const std::vector<MpiWorld::Pending> &pending,
                   const std::string &what) {
  Waiting waiting{true, what, {}};
  for (const MpiWorld::Pending &one : pending)
    waiting.peers.push_back(one.peer);
  return waiting;
}
} // namespace

absl::StatusOr<MpiWorld *> MpiWorld::start(double timeoutSeconds, bool spins) {
  absl::StatusOr<const MpiLibrary *> mpi = MpiLibrary::open();
  if (!mpi.ok())
    return mpi.status();
  MpiWorld *world = new MpiWorld(**mpi, timeoutSeconds, spins);
  if (absl::Status status = world->initialize(); !status.ok())
    return status;
  return world;
}

absl::Status MpiWorld::check(int code, const char *call) const {
  if (code == 0)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(call, " failed on rank ", me, ": ", mpi.errorText(code)));
}

absl::Status MpiWorld::initialize() {
  int provided = 0, number = 0;
  if (int code = mpi.Init_thread(nullptr, nullptr, MpiLibrary::threadMultiple,
                                 &provided))
    return check(code, "MPI_Init_thread");
  if (provided < MpiLibrary::threadMultiple)
    return absl::FailedPreconditionError(
        absl::StrCat("this MPI gives thread level ", provided, ", expected ",
                     MpiLibrary::threadMultiple, ", MPI_THREAD_MULTIPLE"));
  if (absl::Status status =
          check(mpi.Comm_rank(mpi.world, &number), "MPI_Comm_rank");
      !status.ok())
    return status;
  me = static_cast<uint32_t>(number);
  if (absl::Status status =
          check(mpi.Comm_size(mpi.world, &number), "MPI_Comm_size");
      !status.ok())
    return status;
  count = static_cast<uint32_t>(number);
  std::vector<MpiLibrary::Comm *> comms = {&control};
  for (MpiLibrary::Comm &lane : lanes)
    comms.push_back(&lane);
  for (MpiLibrary::Comm *comm : comms) {
    absl::Status status = check(mpi.Comm_dup(mpi.world, comm), "MPI_Comm_dup");
    if (status.ok())
      status = check(mpi.Comm_set_errhandler(*comm, mpi.errorsReturn),
                     "MPI_Comm_set_errhandler");
    if (!status.ok())
      return status;
  }
  return startThread(listener, [this] { listen(); });
}

absl::Status MpiWorld::send(uint32_t lane, uint32_t peer, const void *data,
                            size_t bytes, std::vector<Pending> &pending,
                            int tag) {
  for (size_t at = 0; at < bytes; at += maxMessage) {
    Pending one{nullptr, peer, false};
    if (int code = mpi.Isend(static_cast<const char *>(data) + at,
                             static_cast<int>(std::min(maxMessage, bytes - at)),
                             mpi.byte, static_cast<int>(peer), tag, lanes[lane],
                             &one.request))
      return check(code, "MPI_Isend");
    pending.push_back(one);
  }
  return absl::OkStatus();
}

absl::Status MpiWorld::receive(uint32_t lane, uint32_t peer, void *data,
                               size_t bytes, std::vector<Pending> &pending,
                               int tag) {
  for (size_t at = 0; at < bytes; at += maxMessage) {
    Pending one{nullptr, peer, true};
    if (int code = mpi.Irecv(static_cast<char *>(data) + at,
                             static_cast<int>(std::min(maxMessage, bytes - at)),
                             mpi.byte, static_cast<int>(peer), tag, lanes[lane],
                             &one.request))
      return check(code, "MPI_Irecv");
    pending.push_back(one);
  }
  return absl::OkStatus();
}

/// Removes what is done.
absl::Status MpiWorld::poll(std::vector<Pending> &pending) const {
  for (size_t i = pending.size(); i-- > 0;) {
    int done = 0;
    MpiLibrary::Status status;
    if (int code = mpi.Test(&pending[i].request, &done, &status))
      return check(code, pending[i].receives ? "receiving" : "sending");
    if (!done)
      continue;
    pending[i] = pending.back();
    pending.pop_back();
  }
  return absl::OkStatus();
}

absl::Status MpiWorld::wait(uint32_t lane, std::vector<Pending> &pending,
                            const std::string &what) {
  auto start = Clock::now(); // begins anew where nobody is at fault
  bool told = false, beside = lane != 0 && lane < serviceLane;
  absl::Status status;
  for (int round = 0; !pending.empty(); ++round) {
    status = poll(pending);
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

/// Nothing may be written to memory that the caller is about to free.
void MpiWorld::giveUp(std::vector<Pending> &pending) const {
  for (Pending &one : pending) {
    if (one.receives)
      (void)mpi.Cancel(&one.request);
    (void)mpi.Request_free(&one.request);
  }
  pending.clear();
}

void MpiWorld::setWaiting(uint32_t lane, const Waiting &waiting) {
  std::lock_guard<std::mutex> lock(mutex);
  waits[lane] = waiting;
}

void MpiWorld::setFileWork(uint32_t, std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  fileWork = std::move(what);
}

absl::Status MpiWorld::blame(const Waiting &mine, double seconds) {
  absl::Status found = runtime::blame(
      me, count, mine, seconds, [&](uint32_t peer) -> std::optional<Waiting> {
        Waiting answer;
        if (!ask(peer, answer))
          return std::nullopt;
        return answer;
      });
  return firstFailure.isSet() ? firstFailure.status() : found; // told meanwhile
}

void MpiWorld::finish() {
  stopping = true;
  listener.join();
  mpi.Finalize();
}

void MpiWorld::abort(int code) {
  mpi.Abort(mpi.world, code);
  ::_exit(code);
}

} // namespace meshwork::runtime
