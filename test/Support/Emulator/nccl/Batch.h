// What one group of calls puts into a stream.
#pragma once

#include "runtime/device/cuda/NcclApi.h"
#include "test/Support/Emulator/nccl/Segment.h"
#include <atomic>
#include <memory>
#include <vector>

namespace meshwork::runtime::cuda::nccl {

/// What outlives a communicator's handle while streams still use it.
struct Shared {
  std::shared_ptr<Segment> segment;
  uint32_t rank = 0, ranks = 0;
  std::atomic<bool> aborted{false};
  std::atomic<int> running{0}; // batches in streams
};

struct Call {
  enum class Kind : uint8_t {
    send,
    receive,
    allReduce,
    allGather,
    reduceScatter
  };
  Kind kind;
  const std::byte *from; // null of receive
  std::byte *to;         // null of send
  size_t count;          // of `from`, of a reduceScatter of `to`; elements
  int type, reduction = 0;
  uint32_t peer = 0;

  size_t width() const { return type == dataType::bf16 ? 2 : 4; }
  size_t bytes() const { return count * width(); }
};

/// Runs in a stream, any number of times.
struct Batch {
  std::shared_ptr<Shared> comm;
  std::vector<Call> calls;

  void run() const;
};

} // namespace meshwork::runtime::cuda::nccl
