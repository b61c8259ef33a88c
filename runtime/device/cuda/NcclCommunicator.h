// One group of ranks on one channel, as NCCL knows it. Never blocks in the
// library: calls return at once, and what they began is polled for, with an eye
// on the deadline and on other ranks' failures.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/cuda/NcclLibrary.h"
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

/// Calls of a communicator that never blocks may tell that they go on.
inline bool goesOn(nccl::Result result) {
  return result == nccl::result::success || result == nccl::result::inProgress;
}

/// How long to wait, and for whom not.
struct NcclPatience {
  Transport &host; // its failure ends waiting
  double timeoutSeconds;
};

class NcclCommunicator {
public:
  /// Called by all `members` with the same id, each with its own device's
  /// context current; this rank is members[index]. Its kernels have at most
  /// `maxCtas` thread blocks; 0: as many as the library likes. Returns when all
  /// have come.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>>
  create(const NcclLibrary &library, const NcclPatience &patience,
         const nccl::UniqueId &id, std::vector<uint32_t> members,
         uint32_t index, std::string name, int maxCtas = 0);
  NcclCommunicator(const NcclCommunicator &) = delete;
  /// Ends it together with the others of this process and machine, each in a
  /// thread of its own, or, after a failure, cuts it off.
  ~NcclCommunicator();

  /// What is in streams ends, undone; nothing else can be called any more.
  /// Returns when it has ended, and no graph holds it: graphs go first.
  void cutOff();
  /// Whether it is to be cut off, since it, or a rank, has failed.
  bool hasFailed() const { return failed || !patience.host.failure().ok(); }

  /// Puts what `calls` calls into its streams, as one: it may do anything in
  /// any order. Adds the time it took to `times.waitNs`.
  absl::Status group(absl::FunctionRef<nccl::Result(nccl::Comm)> calls,
                     const std::string &what, CommTimes &times);
  /// Tells it of memory, until `deregister` of what this returns. Older
  /// libraries than nccl::firstThatRegisters cannot.
  absl::StatusOr<void *> registerMemory(void *memory, uint64_t bytes);
  /// Nothing to do for one that was cut off.
  void deregister(void *handle);
  /// What has gone wrong since in what was put into streams.
  absl::Status check();

  const NcclLibrary &library() const { return nccl; }
  /// For all others of the group, at `what`.
  Waiting waiting(const std::string &what) const;

private:
  NcclCommunicator(const NcclLibrary &library, const NcclPatience &patience,
                   std::vector<uint32_t> members, uint32_t index,
                   std::string name)
      : nccl(library), patience(patience), members(std::move(members)),
        index(index), name(std::move(name)) {}
  absl::Status wait(const std::string &what);
  absl::Status settle(nccl::Result result, const std::string &what);

  const NcclLibrary &nccl;
  NcclPatience patience;
  std::vector<uint32_t> members;
  uint32_t index;
  std::string name;
  nccl::Comm comm = nullptr;
  bool failed = false;
};

} // namespace meshwork::runtime::cuda
