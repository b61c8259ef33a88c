#include "test/Support/Emulator/nccl/Batch.h"
#include "runtime/machine/Bf16.h"
#include "test/Support/Emulator/Emulator.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <thread>

namespace meshwork::runtime::cuda::nccl {
namespace {
using Kind = Call::Kind;

/// Goes before the bytes of each message.
struct Envelope {
  uint64_t bytes;
  int32_t type;
  Kind kind;
};

/// Bytes on their way to or from a peer.
struct Message {
  std::byte *place;
  size_t bytes, done = 0;
  Envelope envelope;
  size_t envelopeDone = 0;
  Envelope found{};
};

/// One run of a batch.
class Run {
public:
  explicit Run(const Batch &batch)
      : comm(*batch.comm), calls(batch.calls), sends(comm.ranks),
        receives(comm.ranks), gathered(calls.size()) {}

  void run() {
    if (!checkMemory())
      return;
    for (size_t i = 0; i < calls.size(); ++i)
      expand(calls[i], gathered[i]);
    if (!carry())
      return;
    for (size_t i = 0; i < calls.size(); ++i)
      finish(calls[i], gathered[i]);
  }

private:
  using Copies = std::vector<std::vector<std::byte>>; // by rank

  size_t blocksOf(const Call &call, bool ofSource) const {
    bool all = ofSource ? call.kind == Kind::reduceScatter
                        : call.kind == Kind::allGather;
    return all ? comm.ranks : 1;
  }

  bool checkMemory() const {
    for (const Call &call : calls) {
      auto live = [&](const std::byte *place, bool isSource) {
        return !place ||
               meshworkEmulatorCheck(reinterpret_cast<uintptr_t>(place),
                                     call.bytes() * blocksOf(call, isSource));
      };
      if (live(call.from, true) && live(call.to, false))
        continue;
      meshworkEmulatorFail(cuda::result::illegalAddress,
                           "NCCL: a buffer is not in memory that is allocated "
                           "on the device");
      return false;
    }
    return true;
  }

  void add(std::vector<std::deque<Message>> &to, uint32_t peer,
           const std::byte *place, const Call &call) {
    to[peer].push_back({const_cast<std::byte *>(place),
                        call.bytes(),
                        0,
                        {call.bytes(), call.type,
                         call.kind == Kind::receive ? Kind::send : call.kind}});
  }

  /// A collective is messages from all to all.
  void expand(const Call &call, Copies &copies) {
    if (call.kind == Kind::send)
      return add(sends, call.peer, call.from, call);
    if (call.kind == Kind::receive)
      return add(receives, call.peer, call.to, call);
    copies.resize(comm.ranks);
    for (uint32_t i = 0; i < comm.ranks; ++i) {
      size_t block = call.kind == Kind::reduceScatter ? call.bytes() : 0;
      copies[i].resize(call.bytes());
      if (i == comm.rank) {
        std::memcpy(copies[i].data(), call.from + i * block, call.bytes());
        continue;
      }
      add(sends, i, call.from + i * block, call);
      add(receives, i, copies[i].data(), call);
    }
  }

  /// False when the communicator was aborted, or a message is not the one that
  /// was expected.
  bool carry() {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (true) {
      bool moved = false, open = false;
      for (uint32_t peer = 0; peer < comm.ranks; ++peer) {
        moved |= push(peer);
        moved |= pull(peer);
        open |= !sends[peer].empty() || !receives[peer].empty();
      }
      if (!open || failed || comm.aborted)
        return !open && !failed;
      if (std::chrono::steady_clock::now() > deadline) {
        meshworkEmulatorFail(cuda::result::launchFailed,
                             "NCCL: a peer did not come within 5 minutes");
        return false;
      }
      if (!moved)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  bool push(uint32_t peer) {
    if (sends[peer].empty())
      return false;
    Ring &ring = comm.segment->ring(comm.rank, peer);
    Message &message = sends[peer].front();
    size_t moved = 0;
    if (message.envelopeDone < sizeof(Envelope)) {
      moved = ring.write(reinterpret_cast<std::byte *>(&message.envelope) +
                             message.envelopeDone,
                         sizeof(Envelope) - message.envelopeDone);
      message.envelopeDone += moved;
    }
    if (message.envelopeDone == sizeof(Envelope)) {
      size_t part = ring.write(message.place + message.done,
                               message.bytes - message.done);
      message.done += part;
      moved += part;
      if (message.done == message.bytes)
        sends[peer].pop_front();
    }
    return moved > 0;
  }

  bool pull(uint32_t peer) {
    if (receives[peer].empty())
      return false;
    Ring &ring = comm.segment->ring(peer, comm.rank);
    Message &message = receives[peer].front();
    size_t moved = 0;
    if (message.envelopeDone < sizeof(Envelope)) {
      moved = ring.take(reinterpret_cast<std::byte *>(&message.found) +
                            message.envelopeDone,
                        sizeof(Envelope) - message.envelopeDone);
      message.envelopeDone += moved;
      if (message.envelopeDone < sizeof(Envelope) || !isExpected(message, peer))
        return moved > 0;
    }
    size_t part =
        ring.take(message.place + message.done, message.bytes - message.done);
    message.done += part;
    if (message.done == message.bytes)
      receives[peer].pop_front();
    return moved + part > 0;
  }

  bool isExpected(const Message &message, uint32_t peer) {
    const Envelope &found = message.found, &expected = message.envelope;
    if (found.bytes == expected.bytes && found.type == expected.type &&
        found.kind == expected.kind)
      return true;
    failed = true;
    std::string text = "NCCL: rank " + std::to_string(comm.rank) + " expects " +
                       std::to_string(expected.bytes) + " bytes of type " +
                       std::to_string(expected.type) + " from rank " +
                       std::to_string(peer) + ", which sends " +
                       std::to_string(found.bytes) + " of type " +
                       std::to_string(found.type);
    meshworkEmulatorFail(cuda::result::launchFailed, text.c_str());
    return false;
  }

  void finish(const Call &call, const Copies &copies) {
    if (call.kind == Kind::send || call.kind == Kind::receive)
      return;
    if (call.kind == Kind::allGather) {
      for (uint32_t i = 0; i < comm.ranks; ++i)
        std::memcpy(call.to + i * call.bytes(), copies[i].data(), call.bytes());
      return;
    }
    for (size_t i = 0; i < call.count; ++i)
      call.type == dataType::i32 ? reduceWhole(call, copies, i)
                                 : reduce(call, copies, i);
  }

  /// Of i32, which wraps around.
  void reduceWhole(const Call &call, const Copies &copies, size_t i) {
    auto at = [&](uint32_t rank) {
      return reinterpret_cast<const int32_t *>(copies[rank].data())[i];
    };
    int32_t total = at(0);
    for (uint32_t rank = 1; rank < comm.ranks; ++rank)
      total = call.reduction != reduction::sum
                  ? std::max(total, at(rank))
                  : static_cast<int32_t>(static_cast<uint32_t>(total) +
                                         static_cast<uint32_t>(at(rank)));
    reinterpret_cast<int32_t *>(call.to)[i] = total;
  }

  static float load(const Call &call, const std::byte *values, size_t i) {
    if (call.type == dataType::bf16)
      return fromBf16(reinterpret_cast<const uint16_t *>(values)[i]);
    return reinterpret_cast<const float *>(values)[i];
  }

  /// From the last rank to the first, rounded after each step.
  void reduce(const Call &call, const Copies &copies, size_t i) {
    float total = load(call, copies.back().data(), i);
    for (uint32_t rank = comm.ranks - 1; rank-- > 0;) {
      float value = load(call, copies[rank].data(), i);
      bool takes = value > total || value != value;
      if (call.reduction == reduction::sum)
        total += value;
      else if (takes)
        total = value;
      if (call.type == dataType::bf16)
        total = fromBf16(toBf16(total));
    }
    if (call.type == dataType::bf16)
      reinterpret_cast<uint16_t *>(call.to)[i] = toBf16(total);
    else
      reinterpret_cast<float *>(call.to)[i] = total;
  }

  Shared &comm;
  const std::vector<Call> &calls;
  std::vector<std::deque<Message>> sends, receives; // by peer
  std::vector<Copies> gathered;                     // by call
  bool failed = false;
};
} // namespace

void Batch::run() const {
  if (!comm->aborted)
    Run(*this).run();
}

} // namespace meshwork::runtime::cuda::nccl
