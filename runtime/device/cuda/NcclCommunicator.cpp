#include "runtime/device/cuda/NcclCommunicator.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <chrono>
#include <thread>

namespace meshwork::runtime::cuda {
namespace {
using Clock = std::chrono::steady_clock;

/// Polls without sleep at first: most calls end within microseconds.
constexpr int eagerPolls = 200;
constexpr auto nap = std::chrono::microseconds(50);
} // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>>
NcclCommunicator::create(const NcclLibrary &library,
                         const NcclPatience &patience, const nccl::UniqueId &id,
                         std::vector<uint32_t> members, uint32_t index,
                         std::string name, int maxCtas) {
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(
      library, patience, std::move(members), index, std::move(name)));
  nccl::Config config = nccl::configFor(library.version);
  if (maxCtas > 0) // from 2.17 on; NcclTransport checks
    config.maxCtas = maxCtas;
  auto ranks = static_cast<int>(made->members.size());
  MESHWORK_RETURN_IF_ERROR(
      made->settle(library.initRank(&made->comm, ranks, id,
                                    static_cast<int>(index), &config),
                   absl::StrCat("making the communicator of ", made->name)));
  return made;
}

NcclCommunicator::~NcclCommunicator() {
  // Destroying waits for what is in streams; after a failure it may never end.
  if (comm && !hasFailed())
    (void)settle(nccl.finalize(comm), absl::StrCat("ending ", name));
  if (comm && !hasFailed())
    (void)nccl.destroy(comm);
  else
    cutOff();
}

void NcclCommunicator::cutOff() {
  if (comm)
    (void)nccl.abort(comm);
  comm = nullptr;
}

absl::Status
NcclCommunicator::group(absl::FunctionRef<nccl::Result(nccl::Comm)> calls,
                        const std::string &what, CommTimes &times) {
  auto start = Clock::now();
  if (!comm)
    return absl::AbortedError(
        absl::StrCat(what, " comes after ", name, " was cut off"));
  MESHWORK_RETURN_IF_ERROR(nccl.check(nccl.groupStart(), what, comm));
  nccl::Result called = calls(comm);
  nccl::Result ended = nccl.groupEnd(); // also closes a group that failed
  absl::Status status = settle(goesOn(called) ? ended : called, what);
  times.waitNs +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start)
          .count();
  return status;
}

absl::StatusOr<void *> NcclCommunicator::registerMemory(void *memory,
                                                        uint64_t bytes) {
  void *handle = nullptr;
  MESHWORK_RETURN_IF_ERROR(
      settle(nccl.registerMemory(comm, memory, bytes, &handle),
             absl::StrCat("registering ", bytes, " bytes with ", name)));
  return handle;
}

void NcclCommunicator::deregister(void *handle) {
  if (comm)
    (void)nccl.deregister(comm, handle);
}

absl::Status NcclCommunicator::check() {
  if (!comm)
    return absl::OkStatus();
  nccl::Result state = nccl::result::success;
  nccl::Result asked = nccl.getAsyncError(comm, &state);
  if (asked == nccl::result::success && state == nccl::result::inProgress)
    return absl::OkStatus();
  return settle(asked == nccl::result::success ? state : asked, name);
}

absl::Status NcclCommunicator::settle(nccl::Result result,
                                      const std::string &what) {
  absl::Status status = result == nccl::result::inProgress
                            ? wait(what)
                            : nccl.check(result, what, comm);
  failed = failed || !status.ok();
  return status;
}

Waiting NcclCommunicator::waiting(const std::string &what) const {
  Waiting waiting{true, what, members};
  waiting.peers.erase(waiting.peers.begin() + index);
  return waiting;
}

absl::Status NcclCommunicator::wait(const std::string &what) {
  PeerWait wait(patience.host, members[index], waiting(what));
  for (int64_t polls = 0;; ++polls) {
    nccl::Result state = nccl::result::success;
    MESHWORK_RETURN_IF_ERROR(
        nccl.check(nccl.getAsyncError(comm, &state), what, comm));
    if (state != nccl::result::inProgress)
      return nccl.check(state, what, comm);
    if (polls < eagerPolls)
      continue;
    if (absl::Status failure = patience.host.failure(); !failure.ok())
      return absl::AbortedError(absl::StrCat(
          what, " stopped because another rank failed: ", failure.message()));
    MESHWORK_RETURN_IF_ERROR(wait.check(patience.timeoutSeconds));
    std::this_thread::sleep_for(nap);
  }
}

} // namespace meshwork::runtime::cuda
