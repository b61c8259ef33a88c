// How ranks move data. The executor prepares each collective once and runs it
// every step; a transport (threads of this process now, MPI and NCCL later)
// decides nothing about what is moved.
//
//   auto collective = transport.prepare(rank, {kind, ..., parts});
//   absl::Status status = (*collective)->run(parallel, times);
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/comm/Blame.h"
#include "runtime/comm/Strided.h"
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// One tensor of a collective, in the caller's memory, which outlives it. One
/// element type; what overlaps is what Plan.fbs allows.
struct TransferRequest {
  Strided src, dst;
  size_t dim = 0, toDim = 0;
};

/// One collective of one rank; the fields mean what plan::Collective says.
/// Parts are treated one by one but travel together.
struct CollectiveRequest {
  plan::CollectiveKind kind;
  plan::Reduction reduction;
  std::vector<uint32_t> axes; // of the mesh
  std::vector<TransferRequest> parts;
  std::string name;                   // for messages
  std::vector<uint32_t> sources = {}; // of permute
  uint32_t channel = 0;  // collectives of one channel meet in order
  bool anyOrder = false; // of its sum, and rounded after each addition

  /// `all_reduce "gradients"`, for messages.
  std::string describe() const {
    return absl::StrCat(plan::EnumNameCollectiveKind(kind), " \"", name, "\"");
  }
};

/// Where the time of a collective went, added to what is there. No time is in
/// both.
struct CommTimes {
  int64_t waitNs = 0; // for peers to arrive; between processes, for messages
  int64_t moveNs = 0; // moving and summing
};

/// Runs `body` over [0, items) on the caller's threads, in any split.
using ParallelFor = absl::FunctionRef<void(
    int64_t items, absl::FunctionRef<void(int64_t begin, int64_t end)> body)>;

/// Peers read it while they run: after an error it must live until all ranks
/// of its group have ended.
class PreparedCollective {
public:
  virtual ~PreparedCollective() = default;
  /// One thread at a time per rank and channel; every rank of the group must
  /// run the collectives of a channel in the same order. Sums run in the order
  /// of group index, in f32, rounded once: the same bits on every rank and
  /// every transport. Errors: deadlineExceeded (names who did not come),
  /// aborted (a peer failed; names it and repeats its message).
  virtual absl::Status run(ParallelFor parallel, CommTimes &times) = 0;
};

/// One side of a transfer between two ranks; see plan::Send.
struct PairRequest {
  bool sends;
  uint32_t peer; // the other rank
  /// Both sides of one have one number; transfers of a lane between two ranks
  /// meet in the order in which they are started.
  uint32_t lane;
  std::vector<Strided> parts; // in the caller's memory, which outlives it
  std::string name;           // for messages

  /// `send "to stage 1"`, for messages.
  std::string describe() const {
    return absl::StrCat(sends ? "send" : "receive", " \"", name, "\"");
  }
};

/// Peers read and write its parts until both sides have finished, and after an
/// error until all ranks have ended. All from the rank's own thread.
class PreparedTransfer {
public:
  virtual ~PreparedTransfer() = default;
  /// Does not wait for the other side. It has not been started, or been
  /// finished since.
  virtual absl::Status start(ParallelFor parallel) = 0;
  /// Until what is sent may change, or what is received is there. That needs no
  /// more of the other side than that it starts. Errors as
  /// PreparedCollective::run.
  virtual absl::Status finish(ParallelFor parallel, CommTimes &times) = 0;
};

class InProcessTransport;

class Transport {
public:
  virtual ~Transport() = default;
  /// Itself, where all ranks are threads of this process.
  virtual InProcessTransport *inProcess() { return nullptr; }
  virtual uint32_t numRanks() const = 0;
  /// Called by each rank, in the order in which it will run them.
  virtual absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(uint32_t rank, CollectiveRequest request) = 0;
  /// Called by each rank; a lane's are of one rank, peer and direction.
  virtual absl::StatusOr<std::unique_ptr<PreparedTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) = 0;
  /// Waits for all ranks and returns the bitwise or of their flags.
  virtual absl::StatusOr<uint32_t> agree(uint32_t rank, uint32_t flags,
                                         const char *what) = 0;
  /// Every rank's text, by rank.
  virtual absl::StatusOr<std::vector<std::string>>
  exchange(uint32_t rank, std::string mine, const char *what) = 0;
  using Deliver =
      absl::FunctionRef<absl::Status(absl::Span<const std::string> texts)>;
  /// Calls `deliver` with every rank's text, by rank, once all have given
  /// theirs, on one rank of the process that has rank 0; the others do not
  /// wait. All ranks meet elsewhere between two calls.
  virtual absl::Status gather(uint32_t rank, std::string mine,
                              Deliver deliver) = 0;
  /// Wakes every rank that waits, now and later, with an aborted status that
  /// names `rank`. The first call wins. Any thread.
  virtual void abort(uint32_t rank, const absl::Status &why) = 0;
  /// What `rank` waits for beside this transport, for whoever asks; nothing
  /// when it does not any more. By its own thread. See PeerWait.
  virtual void setWaiting(uint32_t rank, const Waiting &waiting) = 0;
  /// What `rank` does with files, "" when that is over; see FileWork.
  virtual void setFileWork(uint32_t rank, std::string what) = 0;
  /// deadlineExceeded that names who holds up `rank`, which has waited for
  /// `mine` for `seconds`; ok when it is only for files; aborted when a rank
  /// has failed.
  virtual absl::Status blame(uint32_t rank, const Waiting &mine,
                             double seconds) = 0;
  /// What `abort` was given first, ok before.
  virtual absl::Status failure() const = 0;
};

} // namespace meshwork::runtime
