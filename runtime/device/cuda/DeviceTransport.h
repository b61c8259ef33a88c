// How ranks on GPUs move data: as Transport.h, but the memory is the device's,
// and the work is put into a stream instead of being done.
//
//   auto collective = transport.prepare(rank, request); // in the order of use
//   absl::Status status = (*collective)->enqueue(stream, times);
#pragma once

#include "absl/status/statusor.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/cuda/DriverApi.h"
#include <memory>

namespace meshwork::runtime::cuda {

/// Peers may use its memory until all ranks of its group have ended.
class DeviceCollective {
public:
  virtual ~DeviceCollective() = default;

  /// Whether `enqueue` may be called while the stream is captured into a graph,
  /// so that launching the graph repeats the collective. False where ranks
  /// meet on the host.
  virtual bool canBeCaptured() const = 0;

  /// Puts the collective at the end of `stream`: it begins when what is there
  /// is done, on every rank, and what follows begins when this rank's
  /// destinations are filled and its sources are free. One thread at a time per
  /// rank and channel, with the rank's context current; every rank of the group
  /// enqueues the collectives of a channel in the same order. Adds to `times`
  /// what the calling thread spent waiting for peers to come; `moveNs` stays,
  /// moving is the stream's. Errors: as PreparedCollective::run, and those of
  /// the device.
  virtual absl::Status enqueue(Stream stream, CommTimes &times) = 0;
};

/// One side of a transfer between two ranks; see PreparedTransfer.
class DeviceTransfer {
public:
  virtual ~DeviceTransfer() = default;
  /// At the end of `stream`, which carries transfers of its list alone, in the
  /// order of their actions. Does not wait for the other side.
  virtual absl::Status start(Stream stream, CommTimes &times) = 0;
  /// After it what comes next in `stream` does so when the transfer is done.
  /// Where ranks meet on the host it waits until the other side has started.
  virtual absl::Status finish(Stream stream, CommTimes &times) = 0;
};

/// Memory that a transport knows.
class RegisteredMemory {
public:
  virtual ~RegisteredMemory() = default;
  virtual DevicePtr address() const = 0;
};

class DeviceTransport {
public:
  virtual ~DeviceTransport() = default;

  /// Called by each rank, with its context current, in the order in which it
  /// will run them. `Strided::data` of the request are device addresses. What
  /// the transport needs (staging, communicators, code) is made here: nothing
  /// is allocated in `enqueue`.
  virtual absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(uint32_t rank, CollectiveRequest request) = 0;

  /// The same of transfers.
  virtual absl::StatusOr<std::unique_ptr<DeviceTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) = 0;

  /// Memory for what requests point to, before the first `prepare`; it ends
  /// before the transport does. Null: any memory serves.
  virtual absl::StatusOr<std::shared_ptr<RegisteredMemory>>
  allocate(uint64_t /*bytes*/) {
    return nullptr;
  }

  /// What has gone wrong in collectives that streams still run; for whoever
  /// waits for a stream, now and then. By the thread that enqueues.
  virtual absl::Status check() { return absl::OkStatus(); }

  /// What the streams of `rank` may wait for: its peers, in their streams.
  virtual Waiting waiting(uint32_t rank) const = 0;

  /// How many multiprocessors the kernel of a collective on a channel may hold
  /// while others compute; 0: nobody has set a limit.
  virtual uint32_t multiprocessorsOfChannel() const { return 0; }

  /// After a failure of any rank: streams go on without what peers did not
  /// send, so that they can be waited for and memory can be freed. Nothing may
  /// be enqueued after.
  virtual void cutOff() {}
};

} // namespace meshwork::runtime::cuda
